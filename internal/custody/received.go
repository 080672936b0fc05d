package custody

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// A received document is for vaultd's user alone until
// it is in a drop folder.
const (
	receivedFolderMode fs.FileMode = 0o700
	receivedMode       fs.FileMode = 0o600
)

// Received keeps received documents as they came, until the archive has them:
// each in a folder that bears the key of its arrival.
type Received struct{ dir *durable.Dir }

// OpenReceived keeps received documents in dir, a folder of vaultd's own. The
// caller closes it.
func OpenReceived(dir *durable.Dir) *Received { return &Received{dir} }

// Keep makes a file of an arrival of what write writes, and makes it durable. A
// file of that name must be one of which no journal line tells: it is replaced.
func (r *Received) Keep(of archive.Key, name string, write func(io.Writer) error) (kept archive.File, err error) {
	dir, err := makeFolder(r.dir, of.String(), receivedFolderMode)
	if err != nil {
		return kept, err
	}
	defer dir.Close() // synced by the commit below
	c, err := begin(dir, name, receivedMode)
	if err != nil {
		return kept, err
	}
	defer c.file.Discard()
	if err := write(c); err != nil {
		return kept, err
	}
	// A crash before this leaves the file under a temporary name, and the next
	// fetch replaces it.
	if err := c.file.Commit(); err != nil {
		return kept, err
	}
	return archive.File{Path: name, Size: c.size, SHA256: c.digest()}, nil
}

// Open opens a file of an arrival. Its bytes are not compared with a digest.
func (r *Received) Open(of archive.Key, name string) (*os.File, error) {
	file, _, err := durable.OpenRegular(r.dir.Root(), path.Join(of.String(), name))
	return file, err
}

// Digest reads a file of an arrival.
func (r *Received) Digest(of archive.Key, name string) (sum archive.Digest, size int64, err error) {
	file, err := r.Open(of, name)
	if err != nil {
		return sum, 0, err
	}
	defer file.Close() // read-only
	return digestOf(file)
}

// EachKey calls fn with each arrival that has a folder, and returns what fn
// returns first. Folders of other names are none of ours.
func (r *Received) EachKey(fn func(archive.Key) error) error {
	return r.dir.EachName(func(name string) error {
		key, err := archive.ParseKey(name)
		if err != nil {
			return nil
		}
		return fn(key)
	})
}

// Remove removes files of an arrival one by one, those of them that are there,
// and then its folder. Anything else in it stops that.
func (r *Received) Remove(of archive.Key, names []string) error {
	dir, err := r.dir.OpenDir(of.String())
	if err != nil {
		return err
	}
	defer dir.Close() // what it lost is gone with it
	for _, name := range names {
		// A crash after this leaves the others, and the next call removes them.
		if err := dir.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return r.dir.Rmdir(of.String())
}
