"""ROUGE-1.5.5 and METEOR of 2005, as studies of their time printed them, for spicegraph."""
