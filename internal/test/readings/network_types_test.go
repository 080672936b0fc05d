package readings

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/test/kit"
)

// I10, I12: of three PDFs the one that is named like the document goes as its
// image, the others as attachments, also where the configuration calls them
// something else before they are sent. A folder of whose PDFs nobody knows
// which one is meant comes back in words.
func TestReading_I10_I12_TypesOfFiles(t *testing.T) {
	s, d := sending(setup{faults: func(op string, n int) emulator.Fault {
		if op == "network-file" && n < 3 {
			return emulator.Fault{Kind: emulator.Status, Status: 503, RetryAfter: time.Minute}
		}
		return emulator.Fault{}
	}}, "")
	d.more = map[string][]byte{"R-0.pdf": []byte("%PDF-1.4\npicture\n%%EOF\n"), "b.pdf": []byte("%PDF-1.4\nnote\n%%EOF\n")}
	d.route = func(r *ingest.Route, client *networkapi.Client) {
		r.Sender = networkapi.Sender{Client: client, Types: networkapi.FileTypes{"pdf": archive.DataFile, networkapi.AnyEnding: archive.DataFile}}
	}
	virtual(t, s, func(t *testing.T, w *world) {
		d.rests(6*hour, isDelivered)
		var got []string
		for _, f := range w.service.SentDocuments()[0].Files {
			got = append(got, f.Name+" "+f.FileType)
		}
		kit.Want(t, "files at the network", fmt.Sprint(got), "[R-0.pdf imageFile anlage.csv attachmentFile b.pdf attachmentFile rechnung.pdf attachmentFile]")
		d.more, d.notes = map[string][]byte{"b.pdf": []byte("%PDF-1.4\nnote\n%%EOF\n")}, append(d.notes, "")
		d.drop("other", "R-1", "")
		w.pass(hour, step(hour), func() bool { all := d.entries(); return len(all) == 2 && all[1].Source == ledger.Returned })
		note, err := os.ReadFile(filepath.Join(d.path(), "_rejected", "other", "_REASON.txt"))
		kit.Must(t, err)
		kit.Holds(t, "the note", string(note), "NOT SENT. 2 of the files are PDFs", `Write "files": [{"name": "b.pdf", "fileType": "imageFile"}]`, "move this whole folder back")
	})
}
