"""A page of one file that plays runs anywhere, without a server and without a network."""

from functools import cache
from importlib.resources import files

from collsim.player.payload import payload
from collsim.runner import Result


@cache
def asset(name: str) -> str:
    """The text of one of the player's own files."""
    return (files("collsim.player") / name).read_text(encoding="utf-8")


def player_script() -> str:
    """The player as one JavaScript module; its default export mounts a component."""
    return f"{asset('drawing.js')}\n{asset('player.js')}"


def standalone_page(result: Result) -> str:
    """An HTML page that plays all runs of a result on one clock.

    Raises:
        ScenarioError: There are too many messages for one animation.
    """
    # In a script element only "<" can end the data early.
    data = payload(result).replace("<", "\\u003c")
    script = player_script().replace("export default", "").replace("export function", "function")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>collsim</title>
<style>
body {{ margin: 0; }}
{asset("player.css")}
</style>
</head>
<body>
<main id="player"></main>
<script type="application/json" id="runs">{data}</script>
<script type="module">
{script}
const runs = JSON.parse(document.getElementById("runs").textContent);
createPlayer(document.getElementById("player"), runs);
</script>
</body>
</html>
"""
