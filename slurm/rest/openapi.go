package rest

import (
	"io"
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/slurm/data"
)

// openAPI answers with the specification of all paths that are served, made from the schemas.
func openAPI(q *api.RESTRequest, begin func(int, string) io.Writer) {
	if q.Method != "GET" || !slices.Contains([]string{"/openapi", "/openapi/", "/openapi/v3", "/openapi.json",
		"/openapi.yaml"}, q.Path) {
		text(begin, 404, unknown)
		return
	}
	served := func(version int, p *data.Path) bool { return routes()[p.Method+" "+p.Path] != nil }
	yaml := q.YAML || strings.HasSuffix(q.Path, ".yaml")
	mime := "application/json"
	if yaml {
		mime = "application/x-yaml"
	}
	_ = data.WriteOpenAPI(begin(200, mime), yaml, served)
}
