"""Back ends beside the SoCs: their rule files and the names they are asked for by."""
