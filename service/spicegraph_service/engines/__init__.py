"""Where parsing runs: in this process, or in several on this machine, with a store of parses in front."""
