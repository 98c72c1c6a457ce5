"""Shell text is read as a shell would split it, and nothing in it is run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvcalc.launch.shell import Script
from kvcalc.launch.words import commands


def words(text):
    return [[word.text for word in command.words] for command in commands(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a b  c", [["a", "b", "c"]], id="blanks"),
        pytest.param("a \\\n  b", [["a", "b"]], id="a backslash continues the line"),
        pytest.param("a \\\r\n  b\r\n", [["a", "b"]], id="lines of Windows"),
        pytest.param("a 'b \"c' \"d 'e\"", [["a", 'b "c', "d 'e"]], id="quotes inside quotes"),
        pytest.param('a "{\\"x\\": 1}"', [["a", '{"x": 1}']], id="escaped quotes"),
        pytest.param("a --x='{\"k\": 1}'", [["a", '--x={"k": 1}']], id="quotes inside a word"),
        pytest.param("a # b\nc#d", [["a"], ["c#d"]], id="a comment begins a word"),
        pytest.param("a; b && c || d & e | f", [[x] for x in "abcdef"], id="operators end commands"),
        pytest.param("a > out 2>&1", [["a"]], id="redirections are no words"),
        pytest.param(
            "serve <model> -x 1", [["serve", "<model>", "-x", "1"]], id="a placeholder is no redirection"
        ),
        pytest.param("a $(rm -rf x; y) b", [["a", "$(rm -rf x; y)", "b"]], id="a substitution stays text"),
        pytest.param("a `b c` d", [["a", "`b c`", "d"]], id="backquotes stay text"),
        pytest.param("```bash\n$ a b\n```", [["a", "b"]], id="pasted from a page"),
        pytest.param("cat > f <<EOF\nk: 1\nEOF\na", [["cat"], ["a"]], id="a here-document is no command"),
        pytest.param("x=(a\n b)\nc", [["x=", "(", "a", "b", ")"], ["c"]], id="an array over two lines"),
        pytest.param("a 'never closed", [["a", "never closed"]], id="an open quote ends with the file"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


def test_lines_are_those_of_the_file():
    (command,) = commands("# one\nserve \\\n  --x 1 \\\n  --y '\n'")
    assert [word.line for word in command.words] == [2, 3, 3, 4, 4]


def test_a_blank_after_the_backslash_ends_the_command_and_is_remembered():
    first, second = commands("serve --x 1 \\ \n  --y 2\n")
    assert [word.text for word in first.words] == ["serve", "--x", "1"]
    assert first.broken == 1
    assert [word.text for word in second.words] == ["--y", "2"]


def texts(script):
    return [[token.text for token in line.tokens] for line in Script().lines(script)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("N=4\nrun -tp $N", ["run", "-tp", "4"], id="a variable"),
        pytest.param("run -c ${C:-8192}", ["run", "-c", "8192"], id="a default"),
        pytest.param("C=1; run -c ${C:-8192}", ["run", "-c", "1"], id="the variable before its default"),
        pytest.param("run -c ${1:-4}", ["run", "-c", "4"], id="a default for an argument of the script"),
        pytest.param("A=2\nrun ${A:+-x $A}", ["run", "-x", "2"], id="words where a variable is set"),
        pytest.param("run ${A:+-x $A} -y", ["run", "-y"], id="no words where it is not"),
        pytest.param("A=-x\nif t; then\nA=-y\nfi\nrun $A", ["run", "-x"], id="a branch replaces nothing"),
        pytest.param("A=-x\nif t; then\nA+=' -y'\nfi\nrun $A", ["run", "-x", "-y"], id="a branch adds"),
        pytest.param("run $X", ["run", "$X"], id="a variable that is set elsewhere stays"),
        pytest.param('A=5; run \'$A\' "$A" "\\$A"', ["run", "$A", "5", "$A"], id="quotes decide"),
        pytest.param('A=(-x "1 2")\nA+=(-y)\nrun "${A[@]}"', ["run", "-x", "1 2", "-y"], id="an array"),
        pytest.param('c="run -x"\nc+=" \'a b\'"\n$c', ["run", "-x", "a b"], id="a command put together"),
        pytest.param("export A=1 B=2\nrun $A$B", ["run", "12"], id="export"),
        pytest.param("if true; then run -x; fi", ["run", "-x"], id="a branch is read"),
    ],
)
def test_variables(script, expected):
    assert expected in texts(script)


def test_the_environment_of_a_command_is_that_of_file_line_and_container():
    lines = Script().lines("export A=1\nB=2 docker run -e C=3 --env D=4 --env=E=5 image\n")
    values = {name: token.text for name, token in lines[-1].environment.items()}
    assert values == {"A": "1", "B": "2", "C": "3", "D": "4", "E": "5"}


@given(st.text(alphabet="ab $'\"\\\\\n(){}<>#;|&=`-+:1", max_size=60))
def test_any_text_is_read_to_its_end(text):
    for line in Script().lines(text):
        assert all(1 <= token.line <= text.count("\n") + 1 for token in line.tokens)
