"""The lesson on mistakes, without a browser."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from collsim.errors import ExecutionUnavailable
from collsim.gloo.outcomes import Fate
from collsim.mistakes import MISTAKES, Expected, Lesson, Mistake, find
from collsim.mistakes.words import documented, happens, observed

NAMES = [mistake.id for mistake in MISTAKES]


def opened(**link: str) -> AppTest:
    script = "from collsim.ui import learn\nlearn.page()\n"
    found = AppTest.from_string(script, default_timeout=60)
    for name, value in {"lesson": "What goes wrong", **link}.items():
        found.query_params[name] = value
    return found.run()


def lesson(name: str) -> AppTest:
    return opened().selectbox(key="mistake").set_value(find(name).title).run()


def guess(name: str, end: str) -> AppTest:
    return lesson(name).radio(key=f"mistake-guess-{name}").set_value(end).run()


def texts(found: AppTest) -> str:
    return "\n".join(each.value for each in [*found.markdown, *found.text])


@pytest.mark.parametrize("mistake", MISTAKES, ids=NAMES)
def test_a_mistake_is_told_only_after_a_guess(mistake: Mistake) -> None:
    found = lesson(mistake.id)
    assert not found.exception
    assert mistake.work.__name__ in found.code[0].value
    assert mistake.remedy not in texts(found)
    assert not found.button
    found.radio(key=f"mistake-guess-{mistake.id}").set_value(happens(mistake)[0]).run()
    assert not found.exception
    assert found.success[0].value == f"**Right:** {mistake.outcome}."
    assert mistake.remedy in texts(found)
    assert (mistake.diagnose() if mistake.diagnose else mistake.blind) in texts(found)
    for rank in range(4):
        assert documented(mistake, rank)[1] in texts(found)


def test_a_link_names_a_mistake() -> None:
    titles = {mistake.title for mistake in MISTAKES}
    assert len(titles) == len(MISTAKES)
    found = opened(mistake=find("column").title)
    assert "def column(" in found.code[0].value


def test_a_wrong_guess_is_put_right() -> None:
    found = guess("column", "dies")
    assert found.info[0].value == f"**Not quite:** {find('column').outcome}."
    assert "holds [10, 2, 3, 4]" not in texts(found)
    assert "holds [10, 20, 3, 4] instead of [10, 2, 30, 4]" in texts(found)
    assert ":green[right]" in texts(found)
    assert ":red[silently wrong]" in texts(found)


def test_another_mistake_asks_anew() -> None:
    found = guess("column", "dies")
    found.selectbox(key="mistake").set_value(find("short-list").title).run()
    assert not found.info
    assert not found.button


def test_what_may_race_is_told_as_alternatives() -> None:
    ends, said = documented(find("smaller-receiver"), 1)
    assert ends == ("right", "left alone")
    assert said == "holds [1, 1, 1, 1], or loses its connection to another rank"
    assert documented(find("smaller-receiver"), 3) == (("dies",), "its process aborts: “SIGABRT”")


def test_a_warning_is_told_before_and_after() -> None:
    warns = Expected(frozenset({"returned"}), (4.0,), "not in the group")
    mistake = replace(find("root-outside"), right=((1.0,),) * 4, expected=(warns,) * 4)
    said = "[4] instead of [1] (it warned: not in the group)"
    assert documented(mistake, 0) == (("wrong",), f"holds {said}")
    fate = Fate("returned", "not in the group", [4.0])
    assert observed(fate, (1.0,)) == ("wrong", said)
    assert Lesson(mistake, (fate,) * 4, "").spell(0) == f"wrong: {said}"


@pytest.mark.gloo
def test_the_page_makes_a_mistake_on_real_processes() -> None:
    pytest.importorskip("torch")
    found = guess("root-outside", "raises")
    found.button[0].click().run()
    assert not found.exception
    assert found.success[1].value == "All four ranks did what is documented."
    shown = [each.value for each in found.text if "invalid root rank" in each.value]
    assert [each.startswith("raised: RuntimeError") for each in shown] == [False, True] * 4


@pytest.mark.gloo
def test_the_page_says_what_is_not_as_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    found = guess("root-outside", "raises")
    monkeypatch.setattr(Expected, "agrees", lambda *_: False)
    found.button[0].click().run()
    assert found.error[0].value == "This is not as documented."
    assert texts(found).count("DIFFERS") == 4


def test_without_torch_the_page_says_how_to_get_real_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_torch() -> None:
        raise ExecutionUnavailable("there is no torch")

    monkeypatch.setattr("collsim.ui.mistakes.GlooServer", no_torch)
    found = guess("root-outside", "raises")
    found.button[0].click().run()
    assert not found.exception
    assert found.warning[0].value.startswith("there is no torch. ")
    assert 'pip install -e ".[gloo]"' in found.warning[0].value
    assert "invalid root rank" in texts(found)
