package readings

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// I24: each code of the network, about a document and about the second of its
// files. What whoever dropped the folder can mend comes back to him, in words
// that name the file; what vaultd, the account or the network is to blame for
// rejects nothing and blames nobody.
func TestReading_I24_NetworkCodesInWords(t *testing.T) {
	const (
		theirs = "move this whole folder back"
		forIT  = "IT asks the provider"
	)
	for code, want := range map[string]struct {
		document, file string // a part of the note in the folder; empty: the folder does not come back
		turn           string
	}{
		"Error.001.0001": {"does not have this recipient", "does not have this recipient", forIT},
		"Error.001.0006": {}, "Error.001.0010": {}, "Error.001.0012": {}, "Error.003.0001": {}, "Error.003.0020": {}, "Error.003.0032": {}, "Error.004.0003": {}, "Error.004.0004": {},
		"Error.002.0004": {"did not pass the business network's check for viruses", "rechnung.pdf\" did not pass the business network's check for viruses", theirs},
		"Error.004.0002": {"does not take a field of document.json", "", theirs},
		"Error.004.0005": {"PNG, PPT", "rechnung.pdf\" is of a type that the business network does not take; it takes CSV", theirs},
		"Error.004.0012": {"document.json is too large", "rechnung.pdf\" is too large for the business network", theirs},
		"Error.004.0013": {"the scheme or the number of a party", "", theirs},
		"Error.004.0014": {"an IBAN", "", theirs},
	} {
		for op, part := range map[string]string{"network-send": want.document, "network-file": want.file} {
			t.Run(code+"/"+op, func(t *testing.T) {
				t.Parallel()
				s, d := sending(setup{faults: func(of string, n int) emulator.Fault {
					if of == op && (op == "network-send" || n > 1) && n < 50 {
						return emulator.Fault{Kind: emulator.Coded, Code: code}
					}
					return emulator.Fault{}
				}}, "")
				virtual(t, s, func(t *testing.T, w *world) {
					if part == "" {
						w.pass(hour, step(hour), never)
						for _, e := range d.entries() {
							if e.State != ledger.Sending && e.State != ledger.Delivered {
								t.Errorf("%s: %s, %+v, want it to wait: its document is not at fault", e.Folder, e.State, e.Cause)
							}
						}
						d.rests(72*hour, isDelivered) // it goes on by itself once the network takes it
						return
					}
					d.rests(6*hour, func(e ledger.Entry) bool { return e.State == ledger.Rejected && e.Source == ledger.Returned })
					note := kit.Value(os.ReadFile(filepath.Join(d.path(), "_rejected", "out-0", "_REASON.txt")))(t)
					text := string(note)
					kit.Holds(t, "the note", text, "NOT SENT. ", part, want.turn, "For IT: ", code, "request id ", "error id ")
					first, _, _ := bytes.Cut(note, []byte("For IT: "))
					kit.Lacks(t, "what is for whoever dropped it", string(first), "POST", "/v2/", "400", "http")
					if want.turn == forIT {
						kit.Lacks(t, "the note", text, "Put it right")
					}
					brief := present.BriefCause(d.entries()[0].Cause)
					if strings.Contains(brief, "http") || (op == "network-file") != strings.Contains(brief, "rechnung.pdf") && want.turn == theirs {
						t.Errorf("in brief = %q, want words, with the file where one is refused", brief)
					}
				})
			})
		}
	}
}

// I24: of several files, the one with a virus and the one that is too large are
// named in the note, in _STATUS.txt and in brief.
func TestReading_I24_RefusedFileIsNamed(t *testing.T) {
	for name, size := range map[string]int{"virus-found": 10, "file-too-large": 5000} {
		t.Run(name, func(t *testing.T) {
			s, d := sending(setup{service: func(c *emulator.Config) { c.Network.MaxFile = 4000 }}, "")
			d.more = map[string][]byte{"b.pdf": []byte("%PDF-1.4\n" + emulator.VirusMarker + "\n%%EOF\n"), "R-0.pdf": []byte("%PDF-1.4\nfine\n%%EOF\n")}
			if name == "file-too-large" {
				d.more["b.pdf"] = fmt.Appendf(nil, "%%PDF-1.4\n%s\n%%%%EOF\n", strings.Repeat("x", size))
			}
			virtual(t, s, func(t *testing.T, w *world) {
				d.rests(6*hour, func(e ledger.Entry) bool { return e.State == ledger.Rejected && e.Source == ledger.Returned })
				e := d.entries()[0]
				kit.Want(t, "the cause's code", e.Cause.Code, name)
				kit.Want(t, "in brief", present.SummarizeCause(e.Cause), strings.ReplaceAll(name, "-", " ")+": b.pdf")
				note := kit.Value(os.ReadFile(filepath.Join(d.path(), "_rejected", "out-0", "_REASON.txt")))(t)
				kit.Holds(t, "the note", string(note), `NOT SENT. "b.pdf" `, "out of the folder")
				kit.Lacks(t, "the note", string(note), "R-0.pdf", "rechnung.pdf")
				w.pass(hour, step(hour), never)
				status := kit.Value(os.ReadFile(filepath.Join(d.path(), "_STATUS.txt")))(t)
				kit.Holds(t, "_STATUS.txt", string(status), "out-0", strings.ReplaceAll(name, "-", " ")+": b.pdf")
			})
		})
	}
}

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
		note := kit.Value(os.ReadFile(filepath.Join(d.path(), "_rejected", "other", "_REASON.txt")))(t)
		kit.Holds(t, "the note", string(note), "NOT SENT. 2 of the files are PDFs", `Write "files": [{"name": "b.pdf", "fileType": "imageFile"}]`, "move this whole folder back")
	})
}
