//go:build carrygpu

package gpu

import _ "embed"

// carried is the helper with NVML, which make build has built from package gpu/helper.
//
//go:embed bin/muster-gpu
var carried []byte
