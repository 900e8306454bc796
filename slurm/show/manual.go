package show

import "dev.muster/slurm/format"

// JobPlaces are the columns of squeue, StepPlaces those of squeue -s, InfoPlaces those of sinfo, for their manuals.
func JobPlaces() []format.Place { return format.Places(jobColumns) }

// StepPlaces are the columns of squeue -s.
func StepPlaces() []format.Place { return format.Places(stepColumns) }

// InfoPlaces are the columns of sinfo.
func InfoPlaces() []format.Place { return format.Places(infoColumns) }
