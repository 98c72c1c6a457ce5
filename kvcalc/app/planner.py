"""The planner as a marimo notebook: `kvcalc app` runs it. All numbers are the library's."""

# /// script
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

app = marimo.App(width="full", app_title="kvcalc planner", css_file="planner.css")


@app.cell(hide_code=True)
def start():
    """Read the question, and make a control for each input."""
    import os

    import marimo as mo

    from kvcalc.app import asking, showing

    question = asking.start(os.environ.get("KVCALC_APP_FILE"))
    known = asking.controls(question)

    def element(control):
        if control.choices:
            return mo.ui.dropdown(
                control.choices,
                value=control.value,
                label=asking.in_markdown(control.label),
                searchable=len(control.choices) > 10,
                allow_select_none=False,
                full_width=True,
            )
        return mo.ui.slider(
            steps=control.steps,
            value=control.value,
            label=asking.in_markdown(control.label),
            show_value=True,
            debounce=True,
            full_width=True,
        )

    elements = mo.ui.dictionary({control.key: element(control) for control in known})
    return asking, elements, known, mo, question, showing


@app.cell(hide_code=True)
def controls(elements, mo):
    """Show the controls."""
    mo.Html(
        '<h1 class="planner-title">kvcalc planner</h1><div class="planner-controls">'
        + "".join(f'<div class="planner-control">{element.text}</div>' for element in elements.values())
        + "</div>"
    )
    return


@app.cell(hide_code=True)
def saving(asked, mo, shown, showing):
    """Offer the report of what the controls ask as a file."""
    mo.download(
        lambda: showing.saved(asked),
        filename="report.html",
        mimetype="text/html",
        label="Save as a report",
    ) if shown.has_answer else None
    return


@app.cell(hide_code=True)
def answers(asking, elements, known, mo, question, showing):
    """Show the answers at where the controls stand."""
    asked = asking.asked(question, known, elements.value)
    shown = showing.shown(asked)
    mo.Html(shown.html)
    return asked, shown


if __name__ == "__main__":
    app.run()
