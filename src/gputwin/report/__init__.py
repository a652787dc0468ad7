"""What a trace shows, as one HTML file that opens anywhere: figures, tables, and where every number comes from."""

from gputwin.report.page import Section
from gputwin.report.sections.fidelity import fidelity_of
from gputwin.report.subject import Subject
from gputwin.report.write import sections_of, write_report

__all__ = ["Section", "Subject", "fidelity_of", "sections_of", "write_report"]
