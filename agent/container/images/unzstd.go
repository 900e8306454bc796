package images

import (
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// unzstdWord is the word with which the helper prints what a file has that zstd compressed (muster adopt import).
const unzstdWord = "unzstd"

// maxWindow bounds the memory of zstd.
const maxWindow = 64 << 20

// unzstd prints what a file has that zstd compressed.
func unzstd(path string) int {
	err := func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return err
		}
		defer z.Close()
		_, err = io.Copy(os.Stdout, z)
		return err
	}()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s cannot be unpacked: %v\n", path, err)
		return 1
	}
	return 0
}
