package history

import (
	"context"

	"dev.muster/acct"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// AskHistory answers a question in SQL. History has what every user did, so that only operators and administrators
// may ask, whatever PrivateData says.
func (k *Keeper) AskHistory(ctx context.Context, who api.Caller, q api.SQLRequest) (api.SQLResponse, error) {
	if q.Tables {
		return sqlResponse(acct.SQLTables())
	}
	if !visibility.Operates(k.Committed(), who) {
		return api.SQLResponse{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"only operators and administrators may ask history in SQL: see sacct and sreport")
	}
	if !k.Whole() {
		return api.SQLResponse{}, api.ErrElsewhere
	}
	lag, err := k.settle(ctx)
	if err != nil {
		return api.SQLResponse{}, err
	}
	t, err := k.SQL(ctx, q.Query)
	if err != nil {
		return api.SQLResponse{}, err
	}
	out, err := sqlResponse(t)
	out.Lag = lag
	return out, err
}

func sqlResponse(t acct.Table) (api.SQLResponse, error) {
	out := api.SQLResponse{Columns: t.Columns, More: t.More, Rows: make([][]wire.RawMessage, len(t.Rows))}
	for i, row := range t.Rows {
		for _, cell := range row {
			text, err := wire.Marshal(cell)
			if err != nil {
				return out, err
			}
			out.Rows[i] = append(out.Rows[i], text)
		}
	}
	return out, nil
}
