package show

import (
	"slices"
	"strings"

	"dev.muster/slurm/format"
)

// JobPlaces are the columns of squeue for its manual: by their letters, a before A.
func JobPlaces() []format.Place {
	list := format.Places(jobColumns())
	slices.SortStableFunc(list, func(a, b format.Place) int {
		return strings.IndexByte(letters, a.Code) - strings.IndexByte(letters, b.Code)
	})
	return list
}

// letters are those of columns in their order; behind them stand the columns without one.
const letters = "aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ\x00"

// StepPlaces are the columns of squeue -s.
func StepPlaces() []format.Place { return format.Places(stepColumns) }

// InfoPlaces are the columns of sinfo.
func InfoPlaces() []format.Place { return format.Places(infoColumns) }
