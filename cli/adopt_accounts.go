package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"dev.muster/adopt"
	"dev.muster/api"
	"dev.muster/cluster"
	"github.com/urfave/cli/v2"
)

// importAccounts brings in the accounts of a source, with users, associations and QOS.
func importAccounts(c *cli.Context, src *adopt.Source, refused io.Writer) (*adopt.AccountsReport, error) {
	if c.Bool("skip-accounts") {
		return nil, nil
	}
	a := adopt.Accounts{Source: src, Replace: c.Bool("replace"), Refused: refused}
	var have adopt.Have
	var err error
	if !c.Bool("dry-run") {
		have, err = haveAccounts(c)
		a.Send = func(list []cluster.Change) error { return sendChanges(c, list) }
	}
	if err != nil {
		return nil, err
	}
	report, err := a.Run(have)
	return &report, err
}

// haveAccounts asks for the accounts of the cluster, and what belongs to them.
func haveAccounts(c *cli.Context) (adopt.Have, error) {
	b, err := api.Call(c.Context, local(), api.ListBooks, api.AfterQuery{})
	return adopt.Have{Accounts: b.Accounts, Users: b.Users, Assocs: b.Assocs, QOS: b.QOS}, err
}

// readShares reads a file of usage; "" is none.
func readShares(path string) ([]*adopt.Share, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := adopt.ReadShares(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// setShares sets the usage of accounts and users.
func setShares(c *cli.Context, list []*adopt.Share, refused io.Writer) (*adopt.SharesReport, error) {
	if list == nil {
		return nil, nil
	}
	if c.Bool("dry-run") {
		return &adopt.SharesReport{Lines: len(list)}, nil
	}
	have, err := haveAccounts(c)
	if err != nil {
		return nil, err
	}
	a := adopt.Accounts{Refused: refused, Send: func(list []cluster.Change) error { return sendChanges(c, list) }}
	report, err := a.SetShares(list, have)
	return &report, err
}

// printUsage prints what became of usage.
func printUsage(r *adopt.SharesReport, dryRun bool, refused string) {
	switch {
	case r == nil:
		return
	case dryRun:
		fmt.Printf("usage: %d associations and QOS are listed; nothing was changed\n", r.Lines)
		return
	}
	fmt.Printf("usage: set for %d associations and QOS\n", r.Set)
	if r.Refused > 0 {
		fmt.Printf("the usage of %d associations and QOS was not set; %s lists them with the reasons\n", r.Refused, refused)
	}
}

// sendChanges changes accounts, and tells a change that can never be made from one that fails now.
func sendChanges(c *cli.Context, list []cluster.Change) error {
	_, err := api.Call(c.Context, local(), api.ChangeAccounts, cluster.ChangeAccounts{Changes: list})
	var e *api.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case cluster.Invalid, cluster.NotFound, cluster.Conflict:
		return fmt.Errorf("%w: %w", adopt.ErrNotTaken, err)
	}
	return err
}

// printAccounts prints what became of the accounts.
func printAccounts(r *adopt.AccountsReport, dryRun bool, refused string) {
	switch {
	case r == nil:
		return
	case dryRun:
		fmt.Printf("accounts, users, associations and QOS: %d can be imported\n", r.Records)
	default:
		fmt.Printf("accounts, users, associations and QOS: %d added, %d changed, %d unchanged\n", r.Added, r.Changed,
			r.Same)
	}
	if r.Kept > 0 {
		fmt.Printf("%d differ in muster and were kept; --replace changes them\n", r.Kept)
	}
	if n := r.Kept + r.Refused; n > 0 {
		fmt.Printf("%d records or settings were not imported; %s lists them with the reasons\n", n, refused)
	}
}

// noteLimits lists the limits of accounting that hold nothing back as the cluster is configured.
func noteLimits(c *cli.Context, r *adopt.AccountsReport) error {
	if r == nil || r.Added+r.Changed == 0 || c.Bool("dry-run") {
		return nil
	}
	b, err := api.Call(c.Context, local(), api.ListBooks, api.AfterQuery{})
	if err != nil || b.Enforce == nil {
		return err
	}
	var limits []cluster.Limits
	for _, a := range b.Assocs {
		limits = append(limits, a.Limits)
	}
	for _, q := range b.QOS {
		limits = append(limits, q.Limits)
	}
	for _, note := range cluster.Unheld(*b.Enforce, b.Priority, limits...) {
		fmt.Fprintln(os.Stderr, "adopt import: note: "+note)
	}
	return nil
}
