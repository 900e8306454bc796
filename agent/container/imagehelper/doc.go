// Package imagehelper is muster internal image, which fetches container images. The library that speaks
// with registries makes tables when a program starts, which would cost each front-end a third of its
// time: so make build has it in a program of its own, which muster carries (tag carryimage; see
// docs/adr/0007-gpu-helper.md). A plain go build links it.
package imagehelper
