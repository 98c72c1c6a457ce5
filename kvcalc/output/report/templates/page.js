"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.querySelector(".theme");
  const store = { get: () => { try { return localStorage.getItem("kvcalc-theme"); } catch { return null; } },
                  set: (value) => { try { localStorage.setItem("kvcalc-theme", value); } catch { /* kept for this visit */ } } };
  const show = (value) => { if (value === "auto") delete root.dataset.theme; else root.dataset.theme = value; };
  const kept = theme.querySelector(`input[value="${["light", "dark"].includes(store.get()) ? store.get() : "auto"}"]`);
  kept.checked = true;
  show(kept.value);
  theme.addEventListener("change", (event) => { show(event.target.value); store.set(event.target.value); });
  theme.hidden = false;

  const data = document.getElementById("other-loads");
  if (!data) return;
  const found = JSON.parse(data.textContent);
  const inputs = ["prompt", "concurrency", "hit"].map((key) => document.getElementById(`control-${key}`));
  const values = inputs.map((input) => JSON.parse(input.dataset.values));
  const reset = document.getElementById("control-reset");
  const panel = document.querySelector(".found");
  const write = (id, lines) => document.getElementById(id).replaceChildren(...lines.map((line) => {
    const one = document.createElement("p");
    one.textContent = line;
    return one;
  }));
  const meter = (index, use) => {
    const row = document.getElementById(`meter-${index}`);
    row.hidden = !use;
    if (!use) return;
    row.classList.toggle("over", use[0] === 1);
    row.querySelector("i").style.width = `${100 * use[0]}%`;
    row.querySelector("b").textContent = use[1];
  };
  const update = () => {
    const [prompt, concurrency, hit] = inputs.map((input, index) => {
      const at = Number(input.value);
      input.setAttribute("aria-valuetext", values[index][at]);
      document.getElementById(`value-${input.id.slice(8)}`).textContent = values[index][at];
      return at;
    });
    const load = found.loads[prompt][concurrency];
    const restores = found.restores[prompt][hit];
    panel.classList.toggle("good", load.fits === true);
    panel.classList.toggle("bad", load.fits === false);
    document.getElementById("found-head").textContent = load.head;
    [0, 1].forEach((index) => meter(index, load.use[index]));
    write("found-lines", load.lines);
    document.getElementById("found-badges").replaceChildren(...restores.badges.map((badge) => {
      const item = document.createElement("li");
      const mark = document.createElement("span");
      const name = document.createElement("b");
      mark.className = `badge ${badge.style}`;
      name.textContent = badge.name;
      mark.append(name, ` ${badge.text}`);
      item.append(mark);
      return item;
    }));
    write("found-restores", restores.lines);
    reset.disabled = inputs.every((input) => input.value === input.dataset.asked);
  };
  inputs.forEach((input) => input.addEventListener("input", update));
  reset.addEventListener("click", () => {
    inputs.forEach((input) => { input.value = input.dataset.asked; });
    update();
  });
  // A browser may have kept the controls of an earlier visit.
  inputs.forEach((input) => { input.value = input.dataset.asked; });
  update();
  document.querySelectorAll(".scripted").forEach((part) => { part.hidden = false; });
})();
