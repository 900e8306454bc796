package api

import "dev.muster/cluster"

// ForwardX11 is the tunnel by which the srun or salloc that a job came from serves a display on one of the job's nodes.
// Without Take it is held for as long as the display is to be there: a line says which it is, and each line after that
// is the number of a program's connection. With Take it is that connection.
const ForwardX11 = "/v1/steps/x11"

// X11Protocol is what the tunnel is upgraded to.
const X11Protocol = "muster-x11"

// X11Request asks for a display on a node of a job, or for one of its connections.
type X11Request struct {
	Job    cluster.JobID    `json:"job"`
	Node   cluster.NodeName `json:"node"`
	Number int              `json:"number,omitempty"` // of the display, as it was before; 0: any
	Cookie string           `json:"cookie,omitempty"` // of the X server, as hexadecimal digits
	Take   uint64           `json:"take,omitempty"`
}
