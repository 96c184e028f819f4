"""Work on whole stores: copy, rechunk, verify, reference sets, files of other programs."""
