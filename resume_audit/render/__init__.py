"""A report's dictionary, shown on the terminal, as Markdown and as an HTML page."""

from resume_audit.render.markdown import to_markdown
from resume_audit.render.page import to_html

__all__ = ["to_html", "to_markdown"]
