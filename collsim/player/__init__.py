"""The animation: runs as one JSON text, the script that draws them, a page without a server."""

from collsim.player.page import asset, player_script, standalone_page
from collsim.player.payload import MOST_MESSAGES, payload

__all__ = ["MOST_MESSAGES", "asset", "payload", "player_script", "standalone_page"]
