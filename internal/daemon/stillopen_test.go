package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/present"
	"vaultd/internal/selfcheck"
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
	f := kit.Value(os.OpenFile(filepath.Join(append([]string{h.path}, path...)...), flags, 0o660))(h.t)
	return f
}

// I17: a PDF that looks whole and whose scanner still has it open is named once
// it is late, is never taken by time alone, and is delivered whole, with the
// page that came last.
func TestStillOpen_I17_ScannerWritesPageTwo(t *testing.T) {
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

// looked is what a look at a kept folder is to find after a change.
type looked struct {
	change func(at string) error // at is the kept folder
	code   string                // empty: nothing
	what   []string              // in its text
}

func write(name, text string) func(string) error {
	return func(at string) error { return os.WriteFile(filepath.Join(at, name), []byte(text), 0o660) }
}

func edit(name, old, text string) func(string) error {
	return func(at string) error {
		was, err := os.ReadFile(filepath.Join(at, name))
		return errors.Join(err, write(name, regexp.MustCompile(old).ReplaceAllString(string(was), text))(at))
	}
}

func remove(name string) func(string) error {
	return func(at string) error { return os.Remove(filepath.Join(at, name)) }
}

// sameTime changes a file, and keeps its size and its time of change.
func sameTime(name, text string) func(string) error {
	return func(at string) error {
		info, err := os.Stat(filepath.Join(at, name))
		if err != nil {
			return err
		}
		return errors.Join(write(name, text)(at), os.Chtimes(filepath.Join(at, name), info.ModTime(), info.ModTime()))
	}
}

// I12, I26: the check tells what became of an archived folder since: once, as a
// remark with its name that a person ends.
func TestLook_I12_I26_WhatBecameOfAnArchivedFolder(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]looked{
		"Untouched":       {func(string) error { return nil }, "", nil},
		"Deleted":         {os.RemoveAll, ledger.CauseSourceMissing, []string{`not at "_archived/2000-01/Huber 88" any more`}},
		"Renamed":         {func(at string) error { return os.Rename(at, at+" erledigt") }, ledger.CauseSourceMissing, nil},
		"OtherMonth":      {func(at string) error { return moveInto(at, filepath.Join(at, "../../1999-12")) }, ledger.CauseSourceMissing, nil},
		"MonthRemoved":    {func(at string) error { return os.RemoveAll(filepath.Dir(at)) }, ledger.CauseSourceMissing, nil},
		"MonthRenamed":    {func(at string) error { return os.Rename(filepath.Dir(at), filepath.Dir(at)+" alt") }, ledger.CauseSourceMissing, nil},
		"AllRemoved":      {func(at string) error { return os.RemoveAll(filepath.Join(at, "../..")) }, ledger.CauseSourceMissing, nil},
		"FileInItsPlace":  {func(at string) error { return errors.Join(os.RemoveAll(at), os.WriteFile(at, nil, 0o600)) }, ledger.CauseSourceMissing, nil},
		"LinkInItsPlace":  {func(at string) error { return errors.Join(os.Rename(at, at+" x"), os.Symlink(at+" x", at)) }, ledger.CauseSourceMissing, nil},
		"Changed":         {write("rechnung.pdf", "another, and longer"), ledger.CauseSourceChanged, []string{`"rechnung.pdf" has another size`}},
		"ChangedInSecret": {sameTime("rechnung.pdf", "eno"), ledger.CauseSourceChanged, []string{`"rechnung.pdf" has another content`}},
		"SidecarChanged":  {write("metadata.json", "{}"), ledger.CauseSourceChanged, []string{`"metadata.json"`}},
		"FileRemoved":     {remove("rechnung.pdf"), ledger.CauseSourceChanged, []string{`"rechnung.pdf" is missing`}},
		"FileAdded":       {write("nachtrag.pdf", "new"), ledger.CauseSourceChanged, []string{`"nachtrag.pdf" was not archived`}},
		"ReceiptRemoved":  {remove("_RECEIPT.json"), ledger.CauseSourceChanged, []string{`"_RECEIPT.json" is missing`}},
		"ReceiptChanged":  {write("_RECEIPT.json", "{}"), ledger.CauseSourceChanged, []string{`"_RECEIPT.json" is not the one that was written`}},
		"SignatureCut":    {edit("_RECEIPT.json", `(?s),\n  "publicKey".*`, "\n}\n"), ledger.CauseSourceChanged, []string{`"_RECEIPT.json" is not the one that was written`}},
		"TimeChanged":     {edit("_RECEIPT.json", `"seenAt": "20`, `"seenAt": "19`), ledger.CauseSourceChanged, []string{`"_RECEIPT.json" is not the one that was written`}},
		"NoteRemoved":     {remove("_RECEIPT.txt"), ledger.CauseSourceChanged, []string{`"_RECEIPT.txt" is missing`}},
		"NoteChanged":     {write("_RECEIPT.txt", "ARCHIVED."), ledger.CauseSourceChanged, []string{`"_RECEIPT.txt" is not the one that was written`}},
		"AnotherFolder":   {func(at string) error { return errors.Join(os.Rename(at, at+" x"), os.Mkdir(at, 0o770)) }, ledger.CauseSourceChanged, []string{`"rechnung.pdf" is missing`, `"_RECEIPT.json" is missing`}},
		"LeftByAnExplorer": {func(at string) error {
			return errors.Join(write("Thumbs.db", "x")(at), write("~$rechnung.pdf", "x")(at))
		}, "", nil},
		"CopiedBack": {func(at string) error {
			return errors.Join(os.CopyFS(at+" x", os.DirFS(at)), os.RemoveAll(at), os.Rename(at+" x", at))
		}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			withDaemon(t, nil, func(h *testDaemon) {
				h.drop("Huber 88", "88", "one", false)
				h.dropAndPass("Otto 19", "19", "two", false)
				h.lookAt("Huber 88", row)
				if otto := h.byFolder()["Otto 19"]; row.code != "" && (name == "MonthRemoved" || name == "MonthRenamed" || name == "AllRemoved") {
					kit.Want(t, "the other folder of that month", otto.Cause.Code, row.code)
				} else {
					kit.Want(t, "the other folder", otto.Attention(), ledger.NoAttention)
				}
			})
		})
	}
}

func moveInto(at, month string) error {
	return errors.Join(os.Mkdir(month, 0o770), os.Rename(at, filepath.Join(month, filepath.Base(at))))
}

// The same of a single PDF that was delivered.
func TestLook_I12_I26_WhatBecameOfADeliveredPDF(t *testing.T) {
	t.Parallel()
	kit.Rows(t, map[string]looked{
		"Untouched":   {func(string) error { return nil }, "", nil},
		"Deleted":     {os.RemoveAll, ledger.CauseSourceMissing, []string{`"_delivered/2000-01/scan7.pdf"`}},
		"Changed":     {write("scan7.pdf", "%PDF-1.4\nchanged\n%%EOF\n"), ledger.CauseSourceChanged, []string{`"scan7.pdf"`}},
		"NoteRemoved": {remove("_DELIVERED.json"), ledger.CauseSourceChanged, []string{`"_DELIVERED.json" is missing`}},
		"NoteChanged": {write("_DELIVERED.txt", "SENT."), ledger.CauseSourceChanged, []string{`"_DELIVERED.txt" is not the one that was written`}},
	}, func(t *testing.T, row looked) {
		withPDFDrop(t, nil, func(h *testDaemon, s *pdfFlow) {
			h.must(os.WriteFile(filepath.Join(h.path, "scan7.pdf"), []byte("%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"), 0o660))
			h.pass()
			h.lookAt("scan7.pdf", row)
		})
	})
}

// lookAt changes the kept folder of an entry, and checks that the look finds what
// it is to find, once, and that a person ends it.
func (h *testDaemon) lookAt(folder string, row looked) {
	h.t.Helper()
	check := func(found int) ledger.Entry {
		h.t.Helper()
		c := h.d.selfChecker().Check(h.t.Context())
		kit.Want(h.t, "newly found", min(c.Kept, 1), found)
		kit.Want(h.t, "other findings", slices.Concat(c.Ledger, c.Files, c.Unread), nil)
		return h.byFolder()[folder]
	}
	before := check(0)
	kit.Want(h.t, "source", before.Source, ledger.Kept)
	kit.Want(h.t, "attention before", before.Attention(), ledger.NoAttention)
	h.must(row.change(filepath.Join(h.path, before.Dest)))
	if row.code == "" {
		kit.Want(h.t, "cause of an unchanged folder", check(0).Cause, before.Cause)
		return
	}
	e := check(1)
	kit.Want(h.t, "cause", e.Cause.Code, row.code)
	kit.Want(h.t, "attention", e.Attention(), ledger.SourceChanged)
	kit.Holds(h.t, "cause", e.Cause.Text, append(row.what, "The check of 2000-01-01")...)
	kit.Want(h.t, "revision when it was looked at again", check(0).Rev, e.Rev)
	_, err := h.d.Actions().Act(h.t.Context(), e, operator.Person{UID: 7, Reason: "tidied away"}, present.Close.Event)
	h.must(err)
	kit.Want(h.t, "attention after it was closed", check(0).Attention(), ledger.NoAttention)
}

// I12: a folder that is put back is told as that, and the remark stays until a
// person ends it. What a person has ended ends for good.
func TestLook_I12_PutBack(t *testing.T) {
	t.Parallel()
	kit.Rows(t, map[string]bool{"Open": false, "Closed": true}, func(t *testing.T, closed bool) {
		withDaemon(t, nil, func(h *testDaemon) {
			h.dropAndPass("Huber 88", "88", "one", false)
			at := filepath.Join(h.path, h.byFolder()["Huber 88"].Dest)
			h.must(os.Rename(at, at+" aside"))
			h.d.selfChecker().Check(h.t.Context())
			if closed {
				_, err := h.d.Actions().Act(h.t.Context(), h.byFolder()["Huber 88"], operator.Person{UID: 7, Reason: "x"}, present.Close.Event)
				h.must(err)
			}
			h.must(os.Rename(at+" aside", at))
			h.d.selfChecker().Check(h.t.Context())
			e := h.byFolder()["Huber 88"]
			kit.Want(t, "missing", e.IsSourceMissing(), false)
			kit.Want(t, "needs a person", e.Attention() == ledger.SourceChanged, !closed)
			if !closed {
				kit.Holds(t, "cause", e.Cause.Text, "any more", "found it there again")
			}
		})
	})
}

// I12: a change of an invoice is news also next to added files that a person has
// closed, however many they are.
func TestLook_I12_HiddenAmongAddedFiles(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.drop("Huber 88", "88", "one", false)
		h.pass()
		at := filepath.Join(h.path, h.byFolder()["Huber 88"].Dest)
		for _, name := range []string{"0a", "0b", "0c", "0d", "0e", "0f", "0g"} {
			h.must(write(name+".txt", "x")(at))
		}
		look := func(wantNew int, what ...string) {
			kit.Want(h.t, "newly found", h.d.selfChecker().Check(h.t.Context()).Kept, wantNew)
			e := h.byFolder()["Huber 88"]
			kit.Holds(h.t, "cause", e.Cause.Text, what...)
			if wantNew > 0 {
				_, err := h.d.Actions().Act(h.t.Context(), e, operator.Person{UID: 7, Reason: "x"}, present.Close.Event)
				h.must(err)
			}
		}
		look(1, `"0a.txt" was not archived`, "and 2 more")
		look(0)
		h.must(errors.Join(os.Remove(filepath.Join(at, "0g.txt")), write("0h.txt", "x")(at)))
		look(1, "and 2 more")
		h.must(errors.Join(os.Remove(filepath.Join(at, "0h.txt")), sameTime("rechnung.pdf", "eno")(at)))
		look(1, `"rechnung.pdf" has another content`, "and 2 more")
	})
}

// I12: a folder that cannot be read for a while does not hide what was changed in
// it before, however many looks that is, and also if no look was before that.
func TestLook_I12_UnreadableForAWhile(t *testing.T) {
	t.Parallel()
	for name, looks := range map[string]struct{ before, unread []time.Duration }{ // since the change
		"Once":      {[]time.Duration{-3 * time.Hour}, []time.Duration{3 * time.Hour}},
		"Days":      {[]time.Duration{-20 * time.Hour}, []time.Duration{4 * time.Hour, 28 * time.Hour, 52 * time.Hour}},
		"FirstLook": {nil, []time.Duration{3 * time.Hour, 27 * time.Hour, 51 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			withDaemon(t, nil, func(h *testDaemon) {
				h.drop("Huber 88", "88", "one", false)
				h.drop("Otto 19", "19", "two", false) // on the day of its turn a folder is read anyway: seldom both
				h.pass()
				var changed unix.Stat_t // the file system has a clock of its own
				h.must(unix.Stat(h.path, &changed))
				look := func(after time.Duration, unread, found int) {
					c := h.d.selfChecker()
					c.Now = func() time.Time { return time.Unix(changed.Ctim.Unix()).Add(after) }
					r := c.Check(h.t.Context())
					kit.Want(t, "unread", len(r.Unread), unread)
					kit.Want(t, "newly found", r.Kept, found)
				}
				for _, after := range looks.before {
					look(after, 0, 0)
				}
				for _, folder := range []string{"Huber 88", "Otto 19"} {
					h.must(sameTime("rechnung.pdf", "eno")(filepath.Join(h.path, h.byFolder()[folder].Dest)))
				}
				f := durable.Hook(func(op, name string, do func() error) error {
					if op == "mount" && (name == "Huber 88" || name == "Otto 19") {
						return &fs.PathError{Op: "statx", Path: name, Err: fs.ErrPermission}
					}
					return do()
				})
				h.files.Store(&f)
				for _, after := range looks.unread {
					look(after, 2, 0)
				}
				h.mounts("", nil, nil)
				look(looks.unread[len(looks.unread)-1]+24*time.Hour, 0, 2)
			})
		})
	}
}

// I12, I26: since when no look came to its end is known from the first one on,
// so that people can be called.
func TestLook_I12_I26_NeverEnds(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.drop("Huber 88", "88", "one", false)
		h.pass()
		began := time.Now()
		for range 3 { // each is ended after it began, as by a reload
			ctx, end := context.WithCancel(h.t.Context())
			c := h.d.selfChecker()
			c.Now = func() time.Time { end(); return time.Now() }
			kit.Want(t, "the check came to its end", c.CheckFiles(ctx, &selfcheck.Result{}) == nil, false)
			h.waits(24 * 60)
		}
		h.pass()
		s := kit.Value(h.d.Ledger().Scans())(t)[0]
		kit.Want(t, "the last look", s.KeptScan.IsZero(), true)
		kit.Want(t, "since when nothing is known", s.KeptSince.After(began.Add(-25*time.Hour)) && s.KeptSince.Before(began), true)
	})
}

// I12: nothing is called missing in a drop folder that is away, and no look of it
// counts.
func TestLook_I12_NothingIsLostInADropThatIsAway(t *testing.T) {
	t.Parallel()
	kit.Rows(t, map[string]func(h *testDaemon) error{
		"Renamed": func(h *testDaemon) error { return os.Rename(h.path, h.path+" away") },
		"Replaced": func(h *testDaemon) error {
			return errors.Join(os.Rename(h.path, h.path+" away"), os.Mkdir(h.path, 0o770))
		},
		"NoMark": func(h *testDaemon) error {
			return errors.Join(os.Remove(filepath.Join(h.path, ".vaultd/drop.json")), os.RemoveAll(filepath.Join(h.path, "_archived")))
		},
		"Stale": func(h *testDaemon) error {
			f := durable.Hook(func(op, name string, do func() error) error {
				if op == "mount" {
					return &fs.PathError{Op: "statx", Path: name, Err: fs.ErrPermission}
				}
				return do()
			})
			h.files.Store(&f)
			return nil
		},
	}, func(t *testing.T, away func(h *testDaemon) error) {
		withDaemon(t, nil, func(h *testDaemon) {
			h.dropAndPass("Huber 88", "88", "one", false)
			h.d.selfChecker().Check(h.t.Context())
			h.pass()
			before := h.byFolder()["Huber 88"]
			h.must(away(h))
			c := h.d.selfChecker().Check(h.t.Context())
			kit.Want(t, "newly found", c.Kept, 0)
			kit.Want(t, "cause", h.byFolder()["Huber 88"].Cause, before.Cause)
			h.pass()
			scans := kit.Value(h.d.Ledger().Scans())(h.t)
			if l := scans[0]; l.KeptScan.IsZero() || time.Since(l.KeptScan) < 20*time.Minute && l.KeptUnread == 0 {
				t.Errorf("the last look = %v with %d unread, want the one before the drop folder was away, or unread ones", l.KeptScan, l.KeptUnread)
			}
		})
	})
}

// I12, I26: a claimed folder that is removed while its document is on its way. The
// check names it, and once the document is archived its entry says that no folder
// is kept.
func TestLook_I12_I26_TheClaimedFolderIsRemoved(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.lost.Store(true)
		h.drop("Huber 88", "88", "one", false)
		e := h.becomes("Huber 88 packaged")[0]
		h.must(os.RemoveAll(filepath.Join(h.path, ".vaultd/claimed", e.Key.String())))
		c := h.d.selfChecker().Check(h.t.Context())
		kit.Want(t, "files", len(c.Files), 1)
		kit.Holds(t, "finding", c.Files[0], e.Key.String(), "not in .vaultd/claimed any more")
		h.lost.Store(false)
		e = h.becomes("Huber 88 archived")[0]
		kit.Want(t, "source", e.Source, ledger.Kept)
		kit.Want(t, "missing", e.IsSourceMissing(), true)
		kit.Want(t, "attention", e.Attention(), ledger.SourceChanged)
		h.d.selfChecker().Check(h.t.Context())
		kit.Want(t, "revision when it was looked for again", h.byFolder()["Huber 88"].Rev, e.Rev)
	})
}
