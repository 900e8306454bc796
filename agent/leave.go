package agent

import (
	"context"
	"errors"
	"path/filepath"

	"dev.muster/agent/trust"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Leave has a compute node or login host whose data folder this is leave its cluster: its name is free for another
// machine afterwards, and its certificate worth nothing. A machine that is no member leaves nothing.
func Leave(ctx context.Context, dir string) error {
	folder := filepath.Join(dir, trustDir)
	creds, err := trust.Load(folder)
	if errors.Is(err, trust.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	var none revocations
	f, err := openFleet(filepath.Join(folder, serversFile),
		none.clientTLS(newKeyring(creds), trust.ProtoAPI, cluster.RoleServer), nil)
	if err != nil {
		return err
	}
	defer f.client.Close()
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	_, err = api.Call(ctx, f.client, api.LeaveMember, api.Empty{})
	return err
}
