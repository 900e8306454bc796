module dev.muster

go 1.26.0
