"""Measurements of one area beside its peers: ASDF files, codecs, pipelines, datasets, programs in C."""
