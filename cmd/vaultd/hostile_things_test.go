package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf16"

	"golang.org/x/sys/unix"
)

// with makes an invoice folder and spoils it.
func spoilt(spoil func(y *yard, at string)) func(y *yard, at string) {
	return func(y *yard, at string) {
		y.invoice(at)
		spoil(y, at)
	}
}

// link puts a symbolic link in place of name.
func link(name, target string) func(y *yard, at string) {
	return spoilt(func(y *yard, at string) {
		_ = os.Remove(filepath.Join(at, name)) // it may not be there
		y.must(os.Symlink(strings.ReplaceAll(target, "OUTSIDE", y.outside), filepath.Join(at, name)))
		y.give(filepath.Join(at, name))
	})
}

// special puts a FIFO, a socket or a device in place of name.
func special(name string, mode uint32, dev int) func(y *yard, at string) {
	return spoilt(func(y *yard, at string) {
		_ = os.Remove(filepath.Join(at, name)) // it may not be there
		y.must(syscall.Mknod(filepath.Join(at, name), mode|0o660, dev))
		y.give(filepath.Join(at, name))
	})
}

// nested makes folders within folders, each by its own name alone: no path is that long.
func nested(depth int) func(y *yard, at string) {
	return spoilt(func(y *yard, at string) {
		fd, err := unix.Open(at, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		y.must(err)
		for range depth {
			y.must(unix.Mkdirat(fd, "d", 0o770))
			y.must(unix.Fchownat(fd, "d", -1, y.gid, 0))
			y.must(unix.Fchmodat(fd, "d", 0o770, 0))
			next, err := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
			y.must(err)
			y.must(unix.Close(fd))
			fd = next
		}
		file, err := unix.Openat(fd, "tief.pdf", unix.O_CREAT|unix.O_WRONLY, 0o660)
		y.must(err)
		y.must(unix.Fchown(file, -1, y.gid))
		y.must(unix.Fchmod(file, 0o660))
		_, err = unix.Write(file, []byte("x"))
		y.must(err)
		y.must(unix.Close(file))
		y.must(unix.Close(fd))
	})
}

// crowded makes n empty files.
func crowded(n int) func(y *yard, at string) {
	return spoilt(func(y *yard, at string) {
		fd, err := unix.Open(at, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		y.must(err)
		for i := range n {
			file, err := unix.Openat(fd, fmt.Sprintf("%07d.xml", i), unix.O_CREAT|unix.O_WRONLY, 0o660)
			y.must(err)
			y.must(unix.Close(file))
		}
		y.must(unix.Close(fd))
	})
}

func sparse(name string, size int64) func(y *yard, at string) {
	return spoilt(func(y *yard, at string) {
		y.write(filepath.Join(at, name), "")
		y.must(os.Truncate(filepath.Join(at, name), size))
	})
}

// later goes on in the background for a while, until the test ends.
func later(y *yard, times int, every time.Duration, do func(i int)) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range times {
			do(i)
			time.Sleep(every) // a writer of its own has no virtual time
		}
	}()
	y.t.Cleanup(func() { <-ended })
}

// deep is where what is renamed while it is written has gone.
func (y *yard) deep(folder string) string {
	found, _ := filepath.Glob(filepath.Join(y.dir, "rights/.vaultd/claimed/*", folder)) // no pattern in these names
	if len(found) > 0 {
		return found[0]
	}
	return filepath.Join(y.dir, "rights", folder)
}

func hostileThings() []hostile {
	const aLink, move = "is a link, not a file", "Put the file itself in its place"
	rows := []hostile{
		{name: "Empty", make: func(y *yard, at string) { y.folder(at) }, want: waits, says: []string{"no metadata.json"}},
		{name: "OnlySidecar", make: func(y *yard, at string) { y.invoice(at); y.must(os.Remove(at + "/rechnung.pdf")) }, want: returns,
			says: []string{"no invoice beside metadata.json", "Add the invoice's files"}},
		{name: "NoSidecar", make: func(y *yard, at string) { y.invoice(at); y.must(os.Remove(at + "/metadata.json")) }, want: waits, says: []string{"no metadata.json"}},
		{name: "OnlyJunk", make: func(y *yard, at string) {
			y.invoice(at)
			y.must(os.Rename(at+"/rechnung.pdf", at+"/Thumbs.db"))
		}, want: returns, says: []string{"no invoice"}},
		{name: "EmptyFile", make: spoilt(func(y *yard, at string) { y.write(at+"/rechnung.pdf", "") }), want: returns, says: []string{"rechnung.pdf is empty", "Copy the invoice again"}},
		{name: "EmptySubfolder", make: spoilt(func(y *yard, at string) { y.folder(at + "/leer"); y.must(os.Remove(at + "/rechnung.pdf")) }), want: returns, says: []string{"no invoice"}},
		{name: "SidecarTooDeep", make: func(y *yard, at string) { y.folder(at); y.invoice(at + "/innen") }, want: waits, says: []string{"has invoice folders in it, as innen: move the folders inside up one level"}},
		{name: "SidecarIsFolder", make: spoilt(func(y *yard, at string) {
			y.must(os.Remove(at + "/metadata.json"))
			y.write(at+"/metadata.json/metadata.json", "{}")
		}), want: waits, says: []string{"metadata.json is a folder"}},
		{name: "SidecarIsLink", make: link("metadata.json", "OUTSIDE/folder/metadata.json"), want: returns, says: []string{"metadata.json " + aLink, move}},
		{name: "SidecarIsFIFO", make: special("metadata.json", syscall.S_IFIFO, 0), want: returns, says: []string{"metadata.json is a named pipe, not a file"}},
		{name: "SidecarTwice", make: spoilt(func(y *yard, at string) { y.write(at+"/Metadata.JSON", "{}") }), want: returns, says: []string{"has the same name as", "capital letters"}},
		{name: "LinkInside", make: link("kopie.pdf", "rechnung.pdf"), want: returns, says: []string{"kopie.pdf " + aLink, move}},
		{name: "LinkOut", make: link("kopie.pdf", "../../outside/secret.txt"), want: returns, says: []string{"kopie.pdf " + aLink}},
		{name: "LinkAbsolute", make: link("passwd", "/etc/passwd"), want: returns, says: []string{"passwd " + aLink}},
		{name: "LinkToFolder", make: link("Anlagen", "OUTSIDE/folder"), want: returns, says: []string{"Anlagen " + aLink}},
		{name: "LinkToItself", make: link("ich", "ich"), want: returns, says: []string{"ich " + aLink}},
		{name: "LinkLoop", make: link("runde", "."), want: returns, says: []string{"runde " + aLink}},
		{name: "LinkForReason", make: link("_REASON.txt", "OUTSIDE/secret.txt"), want: returns, says: []string{"_REASON.txt " + aLink}},
		{name: "LinkForReceipt", make: link("_RECEIPT.json", "OUTSIDE/secret.txt"), want: returns, says: []string{"_RECEIPT.json " + aLink}},
		{name: "LinkAsJunk", make: link("Thumbs.db", "OUTSIDE/secret.txt"), want: returns, says: []string{"Thumbs.db " + aLink}},
		{name: "HardLinkForeign", make: spoilt(func(y *yard, at string) { y.must(os.Link(y.outside+"/folder/rechnung.pdf", at+"/fremd.pdf")) }), want: returns,
			says: []string{"fremd.pdf is a hard link", "Copy the file in its place"}},
		{name: "HardLinkTwin", make: spoilt(func(y *yard, at string) { y.must(os.Link(at+"/rechnung.pdf", at+"/zwei.pdf")) }), want: returns, says: []string{"is a hard link"}},
		{name: "FIFO", make: special("rohr.pdf", syscall.S_IFIFO, 0), want: returns, says: []string{"rohr.pdf is a named pipe", "Delete it"}},
		{name: "Socket", make: special("dose", syscall.S_IFSOCK, 0), want: returns, says: []string{"dose is a socket", "Delete it"}},
		{name: "CharDevice", make: special("null", syscall.S_IFCHR, 0x103), want: returns, says: []string{"null is a device", "Delete it"}, root: true},
		{name: "BlockDevice", make: special("platte", syscall.S_IFBLK, 0x700), want: returns, says: []string{"platte is a device"}, root: true},
		{name: "Nested8", make: nested(8), want: archives},
		{name: "Nested9", make: nested(9), want: returns, says: []string{"nested deeper than 8", "Move its files up"}},
		{name: "Nested1000", make: nested(1000), want: returns, says: []string{"nested deeper than 8"}},
		{name: "Wide", make: spoilt(func(y *yard, at string) {
			for i := range 1200 {
				y.write(fmt.Sprintf("%s/%d/x", at, i), "x")
			}
		}), want: returns, says: []string{"one invoice has at most 1000", "Make one folder for each invoice"}},
		{name: "ManyFiles", make: crowded(manyFiles()), want: returns, says: []string{"one invoice has at most 1000 files", "Make one folder for each invoice"}},
		{name: "Sparse100GB", make: sparse("scan.pdf", 100_000_000_000), want: returns, says: []string{"holds 100000 MB; the archive takes 100 MB", "scan.pdf"}},
		{name: "Sparse9GB", make: sparse("scan.pdf", 9_900_000_000), want: returns, says: []string{"holds 9900 MB; the archive takes 100 MB"}},
		{name: "SparseSidecar", make: sparse("metadata.json", 1_000_000_000), want: returns, says: []string{"metadata.json has 1000 MB"}},
		{name: "ZipBomb", make: spoilt(func(y *yard, at string) {
			y.write(at+"/bombe.zip", "PK\x03\x04"+strings.Repeat("\x00", 1000)+"PK\x05\x06"+strings.Repeat("\x00", 18))
		}), want: archives},
		{name: "CutOff", make: spoilt(func(y *yard, at string) { y.write(at+"/rechnung.pdf", "%PDF-1.7 and no end") }), want: claimed, says: []string{"rechnung.pdf looks cut off", "IT can let it go as it is"}},
		{name: "SetUID", make: spoilt(func(y *yard, at string) {
			y.must(os.Chmod(at+"/rechnung.pdf", 0o770|os.ModeSetuid|os.ModeSetgid|os.ModeSticky))
		}), want: archives},
		{name: "OldTimes", make: spoilt(func(y *yard, at string) {
			y.must(os.Chtimes(at+"/rechnung.pdf", time.Unix(-1, 0), time.Unix(-1, 0)))
			y.must(os.Chtimes(at, time.Unix(1<<33, 0), time.Unix(1<<33, 0)))
		}), want: archives},
		{name: "Temporary", make: spoilt(func(y *yard, at string) { y.write(at+"/~$brief.docx", "x") }), want: waits, says: []string{"~$brief.docx", "Finish copying"}},
		{name: "TemporaryDeep", make: spoilt(func(y *yard, at string) { y.write(at+"/a/b/scan.PART", "x") }), want: waits, says: []string{"a/b/scan.PART"}},
	}
	return rows
}

// manyFiles is enough to go past every bound; the long form makes a million.
func manyFiles() int {
	if os.Getenv("VAULTD_LONG") != "" {
		return 1_000_000
	}
	return 12_000
}

// hostileRights are about rights, mounts and what moves while it is looked at.
const immutable = 0x10 // FS_IMMUTABLE_FL of the kernel

func hostileRights() []hostile {
	attr := func(y *yard, path string, flags int) {
		fd, err := unix.Open(path, unix.O_RDONLY, 0)
		y.must(err)
		defer unix.Close(fd)
		if err := unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags); err != nil {
			y.t.Log("SKIPPED, no immutable files here:", err)
		}
	}
	foreign := func(path string, mode os.FileMode) func(y *yard, at string) {
		return spoilt(func(y *yard, at string) {
			y.must(os.Chown(filepath.Join(at, path), 0, 0))
			y.must(os.Chmod(filepath.Join(at, path), mode))
		})
	}
	return []hostile{
		{name: "UnreadableFile", make: foreign("rechnung.pdf", 0o600), want: claimed, says: []string{"cannot be read", "rechnung.pdf", "owner root"}, root: true},
		{name: "UnreadableFolder", make: foreign(".", 0o700), want: waits, says: []string{"no right", "owner root", "IT must"}, root: true},
		{name: "UnwritableFolder", make: foreign(".", 0o755), want: waits, says: []string{"no right", "owner root", "IT must"}, root: true},
		{name: "UnreadableSubfolder", make: spoilt(func(y *yard, at string) {
			y.write(at+"/Anlagen/x.pdf", "x")
			y.must(os.Chmod(at+"/Anlagen", 0))
			y.must(os.Lchown(at+"/Anlagen", 0, 0))
		}), want: waits, says: []string{"no right", "IT must"}, root: true},
		{name: "MountInside", make: spoilt(func(y *yard, at string) { y.folder(at + "/Anlagen") }), live: func(y *yard, inside string) {
			y.mount(inside + "/Anlagen")
		}, want: waits, says: []string{"Anlagen", "lies on another disk", "IT"}, root: true},
		{name: "MountItself", make: func(y *yard, at string) { y.folder(at) }, live: func(y *yard, inside string) {
			y.mount(inside)
			y.write(inside+"/metadata.json", "{}")
		}, want: waits, says: []string{"lies on another disk", "IT"}, root: true},
		{name: "BindMountInside", make: spoilt(func(y *yard, at string) { y.folder(at + "/Anlagen") }), live: func(y *yard, inside string) {
			y.bind(y.outside, inside+"/Anlagen")
		}, want: waits, says: []string{"Anlagen", "is a mount", "IT"}, root: true},
		{name: "BindMountOnAFile", make: spoilt(func(*yard, string) {}), live: func(y *yard, inside string) {
			y.bind(y.outside+"/secret.txt", inside+"/rechnung.pdf")
		}, want: waits, says: []string{"rechnung.pdf", "is a mount", "IT"}, root: true},
		{name: "ImmutableFile", make: spoilt(func(*yard, string) {}), live: func(y *yard, inside string) {
			attr(y, inside+"/rechnung.pdf", immutable)
			y.t.Cleanup(func() { attr(y, y.found("ImmutableFile")+"/rechnung.pdf", 0) })
		}, want: archives, root: true},
		{name: "ImmutableFolder", make: spoilt(func(*yard, string) {}), live: func(y *yard, inside string) {
			attr(y, inside, immutable)
			y.t.Cleanup(func() { attr(y, y.found("ImmutableFolder"), 0) })
		}, want: waits, says: []string{"no right", "IT must"}, root: true},
		{name: "Attributes", make: spoilt(func(y *yard, at string) {
			for _, p := range []string{at, at + "/rechnung.pdf"} {
				if err := unix.Setxattr(p, "user.comment", []byte("\x1b[2J<script>"), 0); err != nil {
					y.t.Log("no attributes here:", err)
				}
			}
		}), want: archives},
		{name: "Appended", make: spoilt(func(*yard, string) {}), live: func(y *yard, inside string) {
			f, err := os.OpenFile(inside+"/rechnung.pdf", os.O_APPEND|os.O_WRONLY, 0)
			y.must(err)
			y.t.Cleanup(func() { f.Close() })
			later(y, 60, 50*time.Millisecond, func(i int) {
				if f.WriteString("more\n"); i == 59 {
					f.Close()
				}
			})
		}, want: archives, says: []string{"rechnung.pdf "}},
		{name: "GrowsAndShrinks", make: spoilt(func(*yard, string) {}), live: func(y *yard, inside string) {
			f, err := os.OpenFile(inside+"/rechnung.pdf", os.O_WRONLY, 0)
			y.must(err)
			y.t.Cleanup(func() { f.Close() })
			later(y, 30, 100*time.Millisecond, func(i int) {
				if f.Truncate(int64(i%2*5_000_000 + 1)); i == 29 {
					f.Close()
				}
			})
		}, want: claimed, says: []string{"rechnung.pdf looks cut off"}}, // its end is zeros
		{name: "SwappedForFIFO", make: spoilt(func(*yard, string) {}), live: func(y *yard, inside string) {
			later(y, 40, 70*time.Millisecond, func(i int) {
				at := y.deep("SwappedForFIFO")
				os.Remove(at + "/neu")
				if i%2 == 0 {
					syscall.Mkfifo(at+"/neu", 0o660)
				} else {
					os.Symlink(y.outside+"/secret.txt", at+"/neu")
				}
				os.Rename(at+"/neu", at+"/rechnung.pdf")
			})
		}, want: returns, says: []string{"rechnung.pdf is a "}}, // a link or a named pipe: whichever it was last
	}
}

// mount puts a file system of its own at a path.
func (y *yard) mount(at string) {
	y.t.Helper()
	if err := unix.Mount("hostile", at, "tmpfs", 0, "size=64k,mode=770"); err != nil {
		y.t.Skip("cannot mount here:", err)
	}
	y.must(os.Chown(at, y.uid, y.gid))
	y.t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			y.t.Log("still mounted:", err)
		}
	})
}

// bind mounts a file or a folder of the same file system at a path: its device tells nothing.
func (y *yard) bind(from, at string) {
	y.t.Helper()
	if err := unix.Mount(from, at, "", unix.MS_BIND, ""); err != nil {
		y.t.Skip("cannot mount here:", err)
	}
	y.t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			y.t.Log("still mounted:", err)
		}
	})
}

// found tells where a folder lies by now.
func (y *yard) found(folder string) string {
	for _, pattern := range []string{"", "_archived/*", "_rejected", ".vaultd/claimed/*"} {
		if found, _ := filepath.Glob(filepath.Join(y.dir, "rights", pattern, folder)); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// sidecar makes an invoice with these bytes as its sidecar.
func sidecar(raw string) func(y *yard, at string) {
	return spoilt(func(y *yard, at string) {
		y.write(at+"/metadata.json", strings.ReplaceAll(raw, "N-", fmt.Sprint("N-", y.next, "-")))
	})
}

// fields makes a whole sidecar and adds to it.
func fields(more string) func(y *yard, at string) {
	return sidecar(`{"documentType": "Invoice", "documentId": "N-1", "documentDate": "2026-10-31"` + more + `}`)
}

func utf16le(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func hostileSidecars() []hostile {
	const whole = `{"documentType": "Invoice", "documentId": "N-1", "documentDate": "2026-10-31"}`
	in := func(s ...string) []string { return append(s, "metadata.json") }
	return []hostile{
		{name: "S empty", make: sidecar(""), want: returns, says: in("is empty")},
		{name: "S blank", make: sidecar(" \r\n\t"), want: returns, says: in("is empty")},
		{name: "S BOM alone", make: sidecar("\ufeff"), want: returns, says: in("is empty")},
		{name: "S BOM", make: sidecar("\ufeff" + whole), want: archives},
		{name: "S UTF-16", make: sidecar(utf16le(whole)), want: returns, says: in("UTF-16", "encoding UTF-8")},
		{name: "S Latin-1", make: fields(", \"senderName\": \"M\xfcller\""), want: returns, says: in("not UTF-8")},
		{name: "S NUL byte", make: fields(", \"senderName\": \"a\x00b\""), want: returns, says: in("control character")},
		{name: "S NUL escape", make: fields(`, "senderName": "a\u0000b"`), want: returns, says: in("senderName", "control character")},
		{name: "S half a character", make: fields(`, "senderName": "a\ud800"`), want: returns, says: in("half a character")},
		{name: "S large", make: sidecar(strings.Repeat(" ", 1_000_001)), want: returns, says: in("such a file has at most 1.0 MB")},
		{name: "S deep", make: sidecar(strings.Repeat("[", 100_000)), want: returns, says: in("nested deeper than 16")},
		{name: "S deep objects", make: sidecar(strings.Repeat(`{"a":`, 100_000)), want: returns, says: in("nested deeper than 16")},
		{name: "S wide", make: sidecar("[" + strings.Repeat("1,", 400_000) + "1]"), want: returns, says: in("more than 20000 values")},
		{name: "S twice", make: fields(`, "amount": 1, "amount": 2`), want: returns, says: in("amount", "second time")},
		{name: "S twice escaped", make: fields(`, "amount": 1, "\u0061mount": 2`), want: returns, says: in("amount", "second time")},
		{name: "S unknown", make: fields(`, "recipientnames": "x", "__proto__": {}`), want: returns, says: in("is not a field that is known here", `"recipientName"`)},
		{name: "S trailing", make: sidecar(whole + " trailing"), want: returns, says: in("text after the closing bracket")},
		{name: "S two objects", make: sidecar(whole + whole), want: returns, says: in("text after the closing bracket")},
		{name: "S NaN", make: fields(`, "amount": NaN`), want: returns, says: in("is not a number")},
		{name: "S Infinity", make: fields(`, "amount": -Infinity`), want: returns, says: in("is not a number")},
		{name: "S 400 digits", make: fields(`, "amount": ` + strings.Repeat("9", 400)), want: returns, says: in("amount")},
		{name: "S 1e400", make: fields(`, "amount": 1e400`), want: returns, says: in("amount")},
		{name: "S 1e-999999999", make: fields(`, "amount": 1e-999999999`), want: returns, says: in("amount")},
		{name: "S amount is text", make: fields(`, "amount": "1.234,56"`), want: returns, says: in("amount")},
		{name: "S wrong types", make: sidecar(`{"documentType": 1, "documentId": ["x"], "documentDate": {}, "senderIds": "DE1", "amount": true}`), want: returns, says: in("documentType", "documentId", "documentDate", "senderIds", "amount")},
		{name: "S null", make: fields(`, "amount": null`), want: returns, says: in("is null")},
		{name: "S array", make: sidecar(`[]`), want: returns, says: in("not an object")},
		{name: "S text", make: sidecar(`"x"`), want: returns, says: in("not an object")},
		{name: "S 30 February", make: sidecar(`{"documentType": "Invoice", "documentId": "N-1", "documentDate": "2026-02-30"}`), want: returns, says: in("documentDate")},
		{name: "S month 13", make: sidecar(`{"documentType": "Invoice", "documentId": "N-1", "documentDate": "2026-13-01"}`), want: returns, says: in("documentDate")},
		{name: "S year 0", make: sidecar(`{"documentType": "Invoice", "documentId": "N-1", "documentDate": "0000-01-01"}`), want: returns, says: in("documentDate")},
		{name: "S German date", make: sidecar(`{"documentType": "Invoice", "documentId": "N-1", "documentDate": "31.10.2026"}`), want: returns, says: in("documentDate", "2026-10-31")},
		{name: "S line break in number", make: sidecar(`{"documentType": "Invoice", "documentId": "N-1\r\nX-Evil: 1", "documentDate": "2026-10-31"}`), want: returns, says: in("documentId", "control character")},
		{name: "S bad UUID", make: fields(`, "clientUUID": "../../etc/passwd"`), want: returns, says: in("clientUUID", "is not a UUID")},
		{name: "S zero UUID", make: fields(`, "clientUUID": "00000000-0000-0000-0000-000000000000"`), want: returns, says: in("clientUUID")},
		{name: "S files out of it", make: fields(`, "files": ["../../outside/secret.txt", "/etc/passwd", "C:\\x"]`), want: returns, says: in("is not the name of a file in this folder")},
		{name: "S files not there", make: fields(`, "files": ["fehlt.pdf"]`), want: returns, says: in("fehlt.pdf is not in the folder")},
		{name: "S HTML", make: fields(`, "senderName": "<script>alert(1)</script>", "recipientName": "<img src=x onerror=alert(1)>"`), want: archives},
		{name: "S HTML refused", make: fields(`, "amount": "<script>alert(1)</script>"`), want: returns, says: in("amount")},
		{name: "S formula", make: sidecar(`{"documentType": "Invoice", "documentId": "=cmd|' /C calc'!A0 N-1", "documentDate": "2026-10-31", "senderName": "@SUM(1+1)*cmd|' /C calc'!A0"}`), want: archives},
		{name: "S escape", make: fields(`, "senderName": "\u001b[2J\u001b]0;pwned\u0007"`), want: returns, says: in("control character")},
		{name: "S turned", make: fields(`, "senderName": "Huber\u202e88 \u2066x\u2069", "recipientName": "a\u2028b\u200b"`), want: archives},
		{name: "S refused turned", make: fields(`, "am\u202eount": 1, "x\u001b[2J": 2`), want: returns, says: in("is not a field that is known here")},
		{name: "S Word quotes", make: sidecar(`{“documentType”: “Invoice”}`), want: returns, says: in("curly quotes", `_template\metadata.json`)},
		{name: "S cut", make: sidecar(whole[:40]), want: returns, says: in("metadata.json")},
		{name: "S a ZIP", make: sidecar("PK\x03\x04x"), want: returns, says: in("word processor")},
	}
}
