//go:build carrypmix

package pmix

import _ "embed"

// carried is the PMIx server, which make build has built from package pmi/helper.
//
//go:embed bin/muster-pmix
var carried []byte
