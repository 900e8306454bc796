// Command chart checks a Helm chart and prints its manifests, as helm lint --strict and helm template do:
//
//	chart FOLDER [VALUES.yaml]
package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// release is the name and the namespace for which the chart is rendered.
const release, namespace = "muster", "batch"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// run checks and prints a chart.
func run(args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return errors.New("usage: chart FOLDER [VALUES.yaml]")
	}
	values := chartutil.Values{}
	if len(args) == 2 {
		var err error
		if values, err = chartutil.ReadValuesFile(args[1]); err != nil {
			return err
		}
	}
	if err := check(args[0], values); err != nil {
		return err
	}
	c, err := loader.Load(args[0])
	if err != nil {
		return err
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{
		Name: release, Namespace: namespace, IsInstall: true, Revision: 1}, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.TrimSpace(files[name]) != "" && !strings.HasPrefix(name[strings.LastIndex(name, "/")+1:], "_") {
			fmt.Printf("---\n# Source: %s\n%s\n", name, files[name])
		}
	}
	return nil
}

// check returns the errors and warnings that Helm finds in a chart.
func check(dir string, values chartutil.Values) (err error) {
	for _, m := range lint.AllWithKubeVersion(dir, values, namespace, nil).Messages {
		if m.Severity >= support.WarningSev {
			err = cmp.Or(err, fmt.Errorf("%s: %w", m.Path, m.Err))
		}
	}
	return err
}
