"""Version 1 of the contract: generated from the .proto files beside by ``tools/proto.sh``."""
