"""A harness around a command that asks the model twice, with a few sums to try it on."""

from checked_answers.checked_answers import CheckedAnswers, Sums, load_environment

__all__ = ["CheckedAnswers", "Sums", "load_environment"]
