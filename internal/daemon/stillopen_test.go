package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// waits lets minutes go by.
func (h *testDaemon) waits(minutes int) {
	time.Sleep(time.Duration(minutes) * time.Minute)
	synctest.Wait()
}

// openAs opens a file to write to its end.
func (h *testDaemon) openAs(flags int, path ...string) *os.File {
	h.t.Helper()
	f, err := os.OpenFile(filepath.Join(append([]string{h.path}, path...)...), flags, 0o660)
	h.must(err)
	return f
}

// I17: a PDF that looks whole and whose scanner still has it open is named once
// it is late, is never taken by time alone, and is delivered whole, with the
// page that came last.
func TestStillOpen_I17_ScannerWritesPageTwo(t *testing.T) {
	t.Parallel()
	withPDFDrop(t, func(c *Config) { c.Drops[0].RemindAfter = 20 * time.Minute }, func(h *testDaemon, s *pdfFlow) {
		const page = "%PDF-1.7\npage\n%%EOF\n"
		scanner := h.openAs(os.O_CREATE|os.O_WRONLY, "scan.pdf")
		_, err := scanner.WriteString(page)
		h.must(err)
		h.waits(10)
		h.want()
		kit.Holds(t, "status file while it is early", h.status(), "STILL COPYING (1)", `scan.pdf              is still open in a program that may write to it`)
		h.waits(24 * 60)
		h.want()
		kit.Holds(t, "status file when it is late", h.status(), "PLEASE FIX (1)", `scan.pdf              is still open in a program that may write to it since`, "close it there")
		_, err = scanner.WriteString(page)
		h.must(err)
		h.must(scanner.Close())
		h.becomes("scan.pdf delivered")
		kit.Want(t, "delivered", s.contents[page+page], 1)
	})
}

// I17: in a folder each file counts, in sub-folders too; whoever says that it
// is complete by a marker is not believed over the kernel.
func TestStillOpen_I17_FileInAFolder(t *testing.T) {
	t.Parallel()
	withDaemon(t, func(s *dropwork.Settings) { s.Rules.Complete = "marker" }, func(h *testDaemon) {
		h.drop("Huber 88", "88", "%PDF half", false)
		h.must(os.Mkdir(filepath.Join(h.path, "Huber 88", "scans"), 0o770))
		copying := h.openAs(os.O_CREATE|os.O_RDWR, "Huber 88", "scans", "page.tif")
		h.must(copying.Truncate(200_000)) // its full size, and no content yet
		h.openAs(os.O_CREATE|os.O_RDWR, "Huber 88", ".done").Close()
		h.waits(60)
		h.want()
		kit.Holds(t, "status file", h.status(), `"scans/page.tif" is still open`)
		h.must(copying.Close())
		h.becomes("Huber 88 archived")
	})
}

// I17: a file that is opened between the claim and the seal is not packed before it is closed.
func TestStillOpen_I17_OpenedAfterTheClaim(t *testing.T) {
	t.Parallel()
	withDaemon(t, nil, func(h *testDaemon) {
		h.drop("Huber 88", "88", "%PDF half", false)
		inside := h.openAs(os.O_RDONLY|unix.O_DIRECTORY, "Huber 88") // as a program that works in the folder
		for range 300 {
			if _, all := h.entries(); len(all) > 0 {
				break
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		fd, err := unix.Openat(int(inside.Fd()), "rechnung.pdf", unix.O_WRONLY|unix.O_APPEND, 0)
		h.must(err)
		h.must(inside.Close())
		late := os.NewFile(uintptr(fd), "rechnung.pdf")
		h.waits(60)
		e := h.want("Huber 88 discovered")[0]
		kit.Want(t, "cause", e.Cause, ledger.Cause{Code: ingest.CauseStillOpen, Text: `"rechnung.pdf" is still open in a program that may write to it: close it there`})
		kit.Holds(t, "status file", h.status(), `"rechnung.pdf" is still open`)
		_, err = late.WriteString(", whole now")
		h.must(err)
		h.must(late.Close())
		h.waits(60)
		h.want("Huber 88 archived")
		doc, _, err := h.d.Ledger().Document(e.Key)
		h.must(err)
		for _, f := range doc.Files {
			kit.Check(t, f.Path != "rechnung.pdf" || f.Size == int64(len("%PDF half, whole now")),
				"archived with %d bytes, want the whole file", f.Size)
		}
	})
}
