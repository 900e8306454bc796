package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime"
	"slices"
	"strings"

	"dev.muster/agent/userfile"
	"dev.muster/wire"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
	"golang.org/x/sys/unix"
)

// Image is an image in files. Close ends its use.
type Image struct {
	v1.Image
	// Source names the files that it was read from, as they were then.
	Source string

	*opened
}

// Close closes its files.
func (i *Image) Close() { i.close() }

// Open opens an image, of several the one with the tag. All of it is opened at once, with the rights that the caller
// has now.
func Open(name, tag string) (*Image, error) {
	o := &opened{}
	img, err := open(name, tag, o)
	if err != nil {
		o.close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Image{Image: img, Source: o.source(), opened: o}, nil
}

func open(name, tag string, o *opened) (v1.Image, error) {
	st, err := userfile.Stat(name)
	if err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return fromLayout(&folder{name, o}, tag)
	}
	a, err := openArchive(name, o)
	if err != nil {
		return nil, err
	}
	if _, ok := a.members[indexFile]; ok {
		return fromLayout(a, tag)
	}
	if _, ok := a.members[savedFile]; ok {
		return fromSaved(a, tag)
	}
	return nil, fmt.Errorf("it has neither %s nor %s: it is no archive of an image", indexFile, savedFile)
}

// core is an image as its files have it; see partial.CompressedToImage.
type core struct {
	manifest, config []byte
	mediaType        types.MediaType
	layers           map[v1.Hash]*layer
}

func (c *core) RawConfigFile() ([]byte, error)      { return c.config, nil }
func (c *core) RawManifest() ([]byte, error)        { return c.manifest, nil }
func (c *core) MediaType() (types.MediaType, error) { return c.mediaType, nil }
func (c *core) image() (v1.Image, error)            { return partial.CompressedToImage(c) }
func (c *core) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	l := c.layers[h]
	if l == nil {
		return nil, fmt.Errorf("it has no layer %s", h)
	}
	return l, nil
}

// layer is one of the image's layers, checked against its digest when it is read.
type layer struct {
	digest v1.Hash
	r      *io.SectionReader
	media  types.MediaType
	packed bool // what the digest is of has to be unpacked
}

func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) Size() (int64, error)                { return l.r.Size(), nil }
func (l *layer) MediaType() (types.MediaType, error) { return l.media, nil }

func (l *layer) Compressed() (io.ReadCloser, error) {
	var r io.Reader = io.NewSectionReader(l.r, 0, l.r.Size())
	if l.packed {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = z
	}
	return &checked{r: r, sum: sha256.New(), want: l.digest}, nil
}

// checked is a layer that ends with an error if it is not what its digest says.
type checked struct {
	r    io.Reader
	sum  hash.Hash
	want v1.Hash
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	if errors.Is(err, io.EOF) {
		if got := hex.EncodeToString(c.sum.Sum(nil)); got != c.want.Hex {
			return n, fmt.Errorf("the layer is not what its digest %s says: it has sha256:%s", c.want, got)
		}
	}
	return n, err
}

func (c *checked) Close() error { return nil }

// blobName is a file of a layout by its digest.
func blobName(d v1.Descriptor) (string, error) {
	if d.Digest.Algorithm != "sha256" || len(d.Digest.Hex) != sha256.Size*2 {
		return "", fmt.Errorf("a digest of it is no sha256: %s", d.Digest)
	}
	return "blobs/sha256/" + d.Digest.Hex, nil
}

func blob(fs files, d v1.Descriptor) (*io.SectionReader, error) {
	name, err := blobName(d)
	if err != nil {
		return nil, err
	}
	return fs.open(name)
}

// blobText is the text of a file of a layout, checked.
func blobText(fs files, d v1.Descriptor) ([]byte, error) {
	name, err := blobName(d)
	if err != nil {
		return nil, err
	}
	text, err := text(fs, name)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != d.Digest.Hex {
		return nil, fmt.Errorf("the file is not what its digest %s says", d.Digest)
	}
	return text, nil
}

// refName is the annotation by which a layout names its images.
const refName = "org.opencontainers.image.ref.name"

// maxDepth bounds how deep an index may lie in another.
const maxDepth = 4

func fromLayout(fs files, tag string) (v1.Image, error) {
	top, err := text(fs, indexFile)
	if err != nil {
		return nil, err
	}
	found, err := choose(fs, top, tag, 0)
	if err != nil {
		return nil, err
	}
	raw, err := blobText(fs, found)
	if err != nil {
		return nil, err
	}
	m, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read its manifest: %w", err)
	}
	if len(m.Layers) > maxLayers {
		return nil, fmt.Errorf("it has %d layers, more than %d", len(m.Layers), maxLayers)
	}
	c := &core{manifest: raw, mediaType: found.MediaType, layers: map[v1.Hash]*layer{}}
	if c.config, err = blobText(fs, m.Config); err != nil {
		return nil, err
	}
	for _, d := range m.Layers {
		r, err := blob(fs, d)
		if err != nil {
			return nil, err
		}
		c.layers[d.Digest] = &layer{digest: d.Digest, r: r, media: d.MediaType}
	}
	return c.image()
}

// choose finds the manifest that is meant: of this machine's kind, with the tag if there is one.
func choose(fs files, index []byte, tag string, depth int) (v1.Descriptor, error) {
	var none v1.Descriptor
	if depth > maxDepth {
		return none, errors.New("its indexes lie too deep in each other")
	}
	list, err := v1.ParseIndexManifest(bytes.NewReader(index))
	if err != nil {
		return none, fmt.Errorf("read its index: %w", err)
	}
	fit := slices.DeleteFunc(slices.Clone(list.Manifests), func(d v1.Descriptor) bool {
		return !runsHere(d.Platform) || !named(d.Annotations[refName], tag)
	})
	switch len(fit) {
	case 0:
		return none, fmt.Errorf("it has no image %s for linux/%s; it has: %s", tag, runtime.GOARCH, names(list))
	case 1:
	default:
		return none, fmt.Errorf("it has several images: name one by oci:PATH:TAG of %s", names(list))
	}
	if !fit[0].MediaType.IsIndex() {
		return fit[0], nil
	}
	inner, err := blobText(fs, fit[0])
	if err != nil {
		return none, err
	}
	return choose(fs, inner, "", depth+1)
}

// names are those of a layout's images.
func names(list *v1.IndexManifest) string {
	var out []string
	for _, d := range list.Manifests {
		out = append(out, d.Annotations[refName])
	}
	return strings.Join(out, ", ")
}

// runsHere reports whether an image is for machines of this kind, or does not say.
func runsHere(p *v1.Platform) bool {
	return p == nil || p.OS == "linux" && p.Architecture == runtime.GOARCH
}

// named reports whether a name, as an archive has it, is the one that is asked for: "" for any.
func named(name, tag string) bool {
	return tag == "" || name == tag || strings.HasSuffix(name, ":"+tag)
}

// saved is an image in manifest.json of docker save.
type saved struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// manifest is one that is made, of what a file has that has none.
type manifest struct {
	Version int          `json:"schemaVersion"`
	Type    string       `json:"mediaType"`
	Config  descriptor   `json:"config"`
	Layers  []descriptor `json:"layers"`
}

type descriptor struct {
	Type   string `json:"mediaType"`
	Size   int64  `json:"size"`
	Digest string `json:"digest"`
}

// fromSaved reads what docker save has written. It has no manifest of its own: one is made in which layers stand by
// the digests of what is in them, which the configuration has.
func fromSaved(a *archive, tag string) (v1.Image, error) {
	raw, err := text(a, savedFile)
	if err != nil {
		return nil, err
	}
	var list []saved
	if err := wire.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read %s: %w", savedFile, err)
	}
	s, err := chooseSaved(list, tag)
	if err != nil {
		return nil, err
	}
	c := &core{mediaType: types.DockerManifestSchema2, layers: map[v1.Hash]*layer{}}
	if c.config, err = text(a, s.Config); err != nil {
		return nil, err
	}
	cfg, err := v1.ParseConfigFile(bytes.NewReader(c.config))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Config, err)
	}
	if n := len(cfg.RootFS.DiffIDs); n != len(s.Layers) || n > maxLayers {
		return nil, fmt.Errorf("%s has %d layers and %s %d", savedFile, len(s.Layers), s.Config, n)
	}
	sum, size, err := v1.SHA256(bytes.NewReader(c.config))
	if err != nil {
		return nil, err
	}
	m := manifest{Version: 2, Type: string(c.mediaType),
		Config: descriptor{string(types.DockerConfigJSON), size, sum.String()}}
	for i, name := range s.Layers {
		r, err := a.open(name)
		if err != nil {
			return nil, err
		}
		l := &layer{digest: cfg.RootFS.DiffIDs[i], r: r, media: types.DockerUncompressedLayer, packed: isPacked(r)}
		c.layers[l.digest] = l
		m.Layers = append(m.Layers, descriptor{string(l.media), r.Size(), l.digest.String()})
	}
	if c.manifest, err = wire.Marshal(&m); err != nil {
		return nil, err
	}
	return c.image()
}

// isPacked reports whether a layer is packed by gzip.
func isPacked(r io.ReaderAt) bool {
	var magic [2]byte
	_, _ = r.ReadAt(magic[:], 0) // one that is shorter is not packed
	return magic == [2]byte{0x1f, 0x8b}
}

func chooseSaved(list []saved, tag string) (*saved, error) {
	var fit []*saved
	var names []string
	for i := range list {
		names = append(names, list[i].RepoTags...)
		if tag == "" || slices.ContainsFunc(list[i].RepoTags, func(n string) bool { return named(n, tag) }) {
			fit = append(fit, &list[i])
		}
	}
	if len(fit) != 1 {
		return nil, fmt.Errorf("%d images of it are meant: name one by docker-archive:PATH:TAG of %s",
			len(fit), strings.Join(names, ", "))
	}
	return fit[0], nil
}
