package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

// openWorld is a folder "in" that is watched from the first scan of "in/Huber 88" on.
type openWorld struct {
	t     *testing.T
	path  string
	root  *os.Root
	files *OpenFiles
}

func newOpenWorld(t *testing.T) *openWorld {
	w := &openWorld{t: t, path: t.TempDir(), files: NewOpenFiles()}
	if w.files == nil {
		kit.Missing(t, "the kernel has no room for a watcher")
	}
	write(t, w.path, "Huber 88/sub/", "Huber 88/early.pdf", "aside/")
	var err error
	w.root, err = os.OpenRoot(w.path)
	kit.Must(t, err)
	t.Cleanup(func() { w.root.Close() })
	_, err = Rules{Sidecar: "metadata.json", Opens: w.files}.ScanFolder(w.root, "Huber 88")
	kit.Must(t, err)
	return w
}

func (w *openWorld) open(flags int, rel string) *os.File {
	w.t.Helper()
	f := kit.Value(os.OpenFile(filepath.Join(w.path, rel), flags, 0o660))(w.t)
	w.t.Cleanup(func() { f.Close() })
	return f
}

func (w *openWorld) want(what, want string) {
	w.t.Helper()
	kit.Want(w.t, "open "+what, w.files.FindOpen(w.root, "Huber 88", func(name string) bool { return name == "Thumbs.db" }), want)
}

func (w *openWorld) move(from, to string) {
	w.t.Helper()
	kit.Must(w.t, os.Rename(filepath.Join(w.path, from), filepath.Join(w.path, to)))
}

// I17: what was created or written to and not closed since is open, under
// whatever name it has by then, also after the claim's rename.
func TestOpenFiles_I17_CreatedOrWritten(t *testing.T) {
	w := newOpenWorld(t)
	w.want("at first", "")
	made := w.open(os.O_CREATE|os.O_WRONLY, "Huber 88/sub/new.pdf")
	w.want("while its maker has it, and nothing is written", "Huber 88/sub/new.pdf")
	w.open(os.O_RDONLY, "Huber 88/early.pdf").Close()
	w.want("after somebody read another file", "Huber 88/sub/new.pdf")
	kit.Value(made.WriteString("page 1"))(t)
	w.open(os.O_RDONLY, "Huber 88/sub/new.pdf").Close()
	w.want("after somebody read it", "Huber 88/sub/new.pdf")
	w.move("Huber 88/sub/new.pdf", "Huber 88/renamed.pdf")
	w.want("after it was renamed", "Huber 88/renamed.pdf")
	w.move("Huber 88", "claimed")
	kit.Want(t, "open after the claim", w.files.FindOpen(w.root, "claimed", func(string) bool { return false }), "claimed/renamed.pdf")
	w.move("claimed", "Huber 88")
	kit.Must(t, made.Close())
	w.want("once it is closed", "")
}

// I17: a file that was open before its folder was seen counts from its next
// write on; one that ends as a hard link, or is removed, is not open.
func TestOpenFiles_I17_OpenBefore(t *testing.T) {
	w := newOpenWorld(t)
	early := w.open(os.O_WRONLY, "Huber 88/early.pdf")
	w.want("without a write: nobody knows", "")
	kit.Value(early.WriteString("page 1"))(t)
	w.want("after a write", "Huber 88/early.pdf")
	kit.Must(t, early.Close())
	kit.Must(t, os.Link(filepath.Join(w.path, "Huber 88/early.pdf"), filepath.Join(w.path, "Huber 88/linked.pdf")))
	w.want("a hard link", "")
	w.open(os.O_RDONLY, "Huber 88/linked.pdf").Close()
	w.want("a hard link that was read", "")
	junk := w.open(os.O_CREATE|os.O_WRONLY, "Huber 88/Thumbs.db")
	w.want("what a system leaves behind", "")
	kit.Must(t, junk.Close())
	gone := w.open(os.O_CREATE|os.O_WRONLY, "Huber 88/gone.pdf")
	kit.Must(t, os.Remove(filepath.Join(w.path, "Huber 88/gone.pdf")))
	w.want("a removed file", "")
	kit.Must(t, gone.Close())
	w.open(os.O_CREATE|os.O_WRONLY, "aside/moved.pdf")
	w.move("aside/moved.pdf", "Huber 88/moved.pdf")
	w.want("moved in from where nobody looks", "")
}

// I17, I21: after lost events nothing is believed to be open, and the oldest watches give way.
func TestOpenFiles_I17_I21_Bounds(t *testing.T) {
	w := newOpenWorld(t)
	w.open(os.O_CREATE|os.O_WRONLY, "Huber 88/new.pdf")
	w.want("before", "Huber 88/new.pdf")
	w.files.mu.Lock()
	w.files.handleEvent(-1, unix.IN_Q_OVERFLOW, 0, "")
	w.files.mu.Unlock()
	w.want("after lost events", "")
	for i := range maxWatched + 10 {
		name := fmt.Sprintf("Otto %d", i)
		kit.Must(t, os.Mkdir(filepath.Join(w.path, name), 0o770))
		dir := w.open(os.O_RDONLY, name)
		w.files.watchFolder(dir)
		dir.Close()
	}
	if n := len(w.files.watches); n > maxWatched || n != len(w.files.folders) || n != len(w.files.oldest) {
		t.Errorf("watched = %d, %d and %d folders, want at most %d", n, len(w.files.folders), len(w.files.oldest), maxWatched)
	}
	(*OpenFiles)(nil).watchFolder(nil)
	kit.Want(t, "what nobody watches", (*OpenFiles)(nil).FindOpen(w.root, "Huber 88", nil), "")
}
