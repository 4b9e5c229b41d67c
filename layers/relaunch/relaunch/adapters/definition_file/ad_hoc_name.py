"""The name of a definition that options describe; views import no more of definition files than this."""

NAME = "ad-hoc"
