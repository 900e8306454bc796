package history

import (
	"context"
	"slices"

	"dev.muster/api"
)

// ListImports tells how far the histories of Slurm clusters are taken.
func (k *Keeper) ListImports(ctx context.Context, who api.Caller, q api.AfterQuery) (api.ImportsResponse, error) {
	snap, err := k.After(ctx, q.After)
	if err != nil {
		return api.ImportsResponse{}, err
	}
	return api.ImportsResponse{
		Index:   snap.Index,
		Cluster: snap.Config().ClusterName,
		Imports: slices.Collect(snap.Imports()),
	}, nil
}
