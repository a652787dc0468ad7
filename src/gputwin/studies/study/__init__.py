"""A study: a YAML file that says what to vary; its scenarios are run, kept, compared and reported."""

from gputwin.studies.study.model import Study, read_study, study_of, study_schema
from gputwin.studies.study.run import StudyOutcome, run_study

__all__ = ["Study", "StudyOutcome", "read_study", "run_study", "study_of", "study_schema"]
