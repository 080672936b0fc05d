package custody

import (
	"crypto/sha256"
	"hash"
	"io"
	"io/fs"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// coming is a file while it comes: under a temporary name, with the digest of
// what came so far.
type coming struct {
	file *durable.TempFile
	sum  hash.Hash
	size int64
}

// begin opens a new file in dir. A file that an earlier life left under its
// temporary name is replaced.
func begin(dir *durable.Dir, name string, mode fs.FileMode) (*coming, error) {
	file, err := dir.Create(name, mode)
	return &coming{file: file, sum: sha256.New()}, err
}

// Write implements io.Writer.
func (c *coming) Write(b []byte) (int, error) {
	n, err := c.file.Write(b)
	c.sum.Write(b[:n])
	c.size += int64(n)
	return n, err
}

func (c *coming) digest() archive.Digest { return archive.Digest(c.sum.Sum(nil)) }

// digestOf reads a file to its end.
func digestOf(r io.Reader) (archive.Digest, int64, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	return archive.Digest(sum.Sum(nil)), n, err
}
