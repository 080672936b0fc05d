package watch

import (
	"os"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// ignoredFor returns the names that are left alone for that reason, in a line.
func (b *bench) ignoredFor(reason Reason) string {
	var names []string
	for _, group := range b.w.Snapshot().Ignored {
		if group.Reason != reason {
			continue
		}
		kit.Want(b.t, string(reason), group.Count, len(group.Items))
		for _, n := range group.Items {
			names = append(names, n.Name)
		}
	}
	return strings.Join(names, " ")
}

// I32: what systems make and what a rule of the drop names is left alone and
// listed. A folder that a system might have made is picked up where it holds a
// sidecar; one that a rule names never is.
func TestWatcher_I22_I32_IgnoredNamesAreListed(t *testing.T) {
	for _, mode := range []Mode{Events, Poll} {
		inBubble(t, Config{Mode: mode, IsIgnored: func(name string) bool { return strings.HasPrefix(name, "Entwurf") }}, func(b *bench) {
			write(t, b.path, "lost+found/", "$RECYCLE.BIN/S-1-5/metadata.json", ".Trash-1000/files/", "#recycle/x.pdf", ".stignore", "Thumbs.db",
				".stfolder/metadata.json", "Entwurf 1/metadata.json", "Entwurf.txt", "Huber/", "good/metadata.json")
			kit.Must(t, os.Chmod(b.path+"/lost+found", 0))
			defer os.Chmod(b.path+"/lost+found", 0o700)
			b.run()
			b.events <- Event{Name: "lost+found"}
			b.events <- Event{Name: "Entwurf 1"}
			b.pass(5 * time.Minute)
			kit.Want(t, "by system", b.ignoredFor(IgnoredBySystem), "#recycle $RECYCLE.BIN .Trash-1000 .stignore Thumbs.db lost+found")
			kit.Want(t, "by rule", b.ignoredFor(IgnoredByRule), "Entwurf 1 Entwurf.txt")
			for _, name := range []string{".stfolder", "good"} {
				_, taken := b.takenAt(name)
				kit.Check(t, taken, "%s %s is not taken, want it taken", mode, name)
			}
			kit.Want(t, "taken", b.count(), 2)
			for _, group := range b.w.Snapshot().NotTaken {
				kit.Want(t, "reason", group.Reason, NoSidecar)
				kit.Want(t, "not taken", group.Count, 1)
			}
			// A sidecar that comes late makes it an invoice.
			write(t, b.path, "#recycle/metadata.json")
			b.pass(3 * time.Minute)
			_, taken := b.takenAt("#recycle")
			kit.Check(t, taken, "%s: #recycle with a sidecar is not taken, want it taken", mode)
		})
	}
}

// I17: an unfinished file and a placeholder keep their folder from being picked
// up, and the reason names them. In a drop of single files a companion waits too.
func TestWatcher_I17_UnfinishedNamesWait(t *testing.T) {
	names := map[string]Reason{
		".r.pdf.Xy12Zz": Temporary, "r.pdf.9f8e7d6c.partial": Temporary, ".goutputstream-AB12CD": Temporary, ".sftpgo-upload.c.r.pdf": Temporary,
		".r.pdf.icloud": Placeholder, "r.pdf.nextcloud": Placeholder,
	}
	inBubble(t, Config{Mode: Poll}, func(b *bench) {
		for name := range names {
			write(t, b.path, "of "+name+"/metadata.json", "of "+name+"/"+name)
		}
		write(t, b.path, "whole/metadata.json", "whole/metadata.json~", "whole/.metadata.json.swp")
		b.run()
		b.pass(time.Hour)
		for name, want := range names {
			got, detail := b.reasonOf("of " + name)
			kit.Want(t, name, got, want)
			kit.Want(t, "detail", detail, name)
		}
		kit.Want(t, "taken", b.count(), 1)
	})
	names["r.pdf~"], names[".~lock.r.pdf#"] = Temporary, Temporary
	inBubble(t, Config{Kind: Files, Mode: Poll}, func(b *bench) {
		for name := range names {
			write(t, b.path, name)
		}
		b.run()
		b.pass(time.Hour)
		for name, want := range names {
			got, _ := b.reasonOf(name)
			kit.Want(t, name, got, want)
		}
		kit.Want(t, "taken", b.count(), 0)
	})
}
