"""What is known, as lists: models, machines, formulas."""

from datetime import date

from kvcalc.catalog import hardware as machines
from kvcalc.catalog import models
from kvcalc.documents import dump_yaml
from kvcalc.engines import EngineSettings, lay_out
from kvcalc.explain import explain, names
from kvcalc.output.fields import Column, Table
from kvcalc.profiles import Hardware


def models_table(text: str = "") -> Table:
    """Return the model profiles whose name contains `text`."""
    columns = (
        Column("name"),
        Column("model_type"),
        Column("parameters", "1"),
        Column("active", "1"),
        Column("kv_per_token", "byte/token"),
        Column("kv_constant", "byte"),
        Column("max_tokens", "token"),
        Column("source"),
    )
    rows = []
    for name in models.names():
        if text.lower() not in name.lower():
            continue
        model = models.load(name)
        layout = lay_out(model.shape, EngineSettings())
        counted = model.parameters
        rows.append(
            (
                name,
                model.shape.model_type,
                counted.total if counted else None,
                counted.active if counted else None,
                layout.bytes_per_token,
                layout.constant_bytes,
                model.shape.max_tokens,
                model.sources["model"].kind if "model" in model.sources else "",
            )
        )
    note = "KV is one logical copy in the model's own dtype, without an engine; constant: full windows and states."
    return Table("Models", columns, tuple(rows), (note,), "kvcalc.models/1")


def model_profile(name: str, new_name: str | None = None) -> str:
    """Return a model as the YAML text of a profile, with its source and today's date."""
    from dataclasses import replace

    model = models.load(name)
    called = new_name or model.name.split("/")[-1].lower()
    model = replace(model, name=called, shape=replace(model.shape, name=called))
    source = model.sources["model"]
    url = f"https://huggingface.co/{model.hub}" if model.hub else ""
    document = models.to_document(
        model,
        title=source.note or source.source,
        url=url,
        retrieved=date.today().isoformat(),
        note=source.source,
    )
    return dump_yaml(document, inline_leaves=True)


def hardware_table(text: str = "") -> Table:
    """Return the machines whose name contains `text`."""
    columns = (
        Column("name"),
        Column("memory", "byte"),
        Column("bandwidth", "byte/second"),
        Column("dense_16_bit", "flop/second"),
        Column("host_link", "byte/second"),
        Column("host_link_is"),
        Column("title"),
    )
    rows = []
    for name in machines.names():
        if text.lower() not in name.lower():
            continue
        machine = machines.load(name)
        device, link = machine.device, machine.host_to_device
        kind = machine.provenance["host_to_device.bandwidth"].kind
        peak = device.peak("bf16")
        rows.append((name, device.capacity, device.bandwidth, peak, link.bandwidth, kind, machine.title))
    note = "Memory is what the driver reports; `kvcalc hardware show NAME` has each value with its source."
    return Table("Machines", columns, tuple(rows), (note,), "kvcalc.hardware-list/1")


def hardware_answer(name: str, values: dict[str, str] | None = None) -> Table:
    """Return one machine value by value, with how it is known and from where."""
    machine = machines.load(name)
    if values:
        machine = machines.with_values(machine, values)
    columns = (Column("value"), Column("as_printed"), Column("kind"), Column("source"), Column("note"))
    rows = [
        (key, found.as_printed, found.kind, _place(machine, found.source), found.note or "")
        for key, found in machine.provenance.items()
    ]
    notes = (machine.note,) if machine.note else ()
    return Table(f"{machine.name}: {machine.title}", columns, tuple(rows), notes, "kvcalc.hardware-show/1")


def _place(machine: Hardware, key: str) -> str:
    source = machine.sources.get(key)
    return (source.url or source.title) if source else key


def formulas_table() -> Table:
    """Return all formulas with the question that each answers."""
    rows = tuple((name, explain(name).summary, explain(name).equation) for name in names())
    columns = (Column("name"), Column("answers"), Column("equation"))
    return Table("Formulas", columns, rows, ("`kvcalc explain NAME` says more.",), "kvcalc.formulas/1")
