package networkapi

import (
	"fmt"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// I10, I12: what each file is to its document. Of several PDFs one is the
// image; where nobody can say which one, the folder is refused in words.
func TestTypeFiles_I12_OneImage(t *testing.T) {
	const image, attachment, data = "imageFile", "attachmentFile", "dataFile"
	for name, r := range map[string]struct {
		files  string // the document's own list
		names  string
		types  FileTypes
		want   string // the types; empty: refused
		refuse string
	}{
		"OnlyPDF":         {names: "scan.pdf a.xml b.csv", want: image + " " + data + " " + attachment},
		"NamedByNumber":   {names: "Lieferschein.pdf RE_4711.PDF", want: attachment + " " + image},
		"NamedByFolder":   {names: "a.pdf Huber-88.pdf c.pdf", want: attachment + " " + image + " " + attachment},
		"NumberFirst":     {names: "Huber-88.pdf RE-4711.pdf", want: attachment + " " + image},
		"NamedTwice":      {names: "RE4711.pdf RE-4711.pdf", refuse: "2 of the files are PDFs, and none is named like the document or the folder"},
		"NobodyKnows":     {names: "a.pdf b.pdf", refuse: `write "files": [{"name": "a.pdf", "fileType": "imageFile"}]`},
		"Listed":          {files: `[{"name":"b.pdf","fileType":"imageFile"}]`, names: "a.pdf b.pdf", want: attachment + " " + image},
		"ListedInCapital": {files: `[{"name":"B.PDF","fileType":"imageFile"}]`, names: "a.pdf b.pdf", want: attachment + " " + image},
		"OneLeft":         {files: `[{"name":"b.pdf","fileType":"attachmentFile"}]`, names: "a.pdf b.pdf", want: image + " " + attachment},
		"TwoImages":       {files: `[{"name":"a.pdf","fileType":"imageFile"},{"name":"b.pdf","fileType":"imageFile"}]`, names: "a.pdf b.pdf c.pdf", want: image + " " + image + " " + attachment},
		"DataAsPDF":       {files: `[{"name":"a.csv","fileType":"dataFile"}]`, names: "a.csv", want: data},
		"NotThere":        {files: `[{"name":"c.pdf","fileType":"imageFile"}]`, names: "a.pdf", refuse: `names "c.pdf", which is not in the folder`},
		"NoPDFIsAnImage":  {types: FileTypes{"pdf": "attachmentFile"}, names: "a.pdf b.pdf", want: attachment + " " + attachment},
		"PagesOfAScan":    {types: FileTypes{"tif": "imageFile"}, names: "1.tif 2.tif", want: image + " " + image},
		"None":            {names: "", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := ""
			if r.files != "" {
				files = `, "files": ` + r.files
			}
			document := `{"data":{"documentCurrencyCode":"EUR","externalDocumentIdentifier":{"id":"RE-4711"}}` + files + `}`
			if r.types == nil {
				r.types = DefaultFileTypes()
			}
			types, faults := r.types.TypeFiles([]byte(document), "Huber 88", strings.Fields(r.names))
			if r.refuse != "" {
				kit.Holds(t, "the faults", fmt.Sprint(faults), r.refuse)
				return
			}
			kit.Want(t, "faults", len(faults), 0)
			kit.Want(t, "types", strings.Trim(fmt.Sprint(types), "[]"), r.want)
			body := kit.Value(ComposeBody([]byte(document), nil))(t)
			kit.Lacks(t, "what is sent", string(body), "files\"")
		})
	}
}

// The list is checked before anything is sent.
func TestCheckDocument_ListedFiles(t *testing.T) {
	for files, want := range map[string]string{
		`{}`:                              "files: must be a list",
		`["a.pdf"]`:                       "files[0]: must be an object",
		`[{"fileType":"imageFile"}]`:      "files[0].name: is missing",
		`[{"name":"a.pdf"}]`:              "files[0].fileType: is missing; write imageFile, attachmentFile or dataFile.",
		`[{"name":"a","fileType":"pdf"}]`: "files[0].fileType: is not known; write imageFile, attachmentFile or dataFile.",
		`[{"name":"a","fileType":"dataFile"},{"name":"A","fileType":"dataFile"}]`: "files[1].name: names a file that was named before",
		`[{"name":"a","fileType":"dataFile","type":"x"}]`:                         "files[0].type: is not known here",
	} {
		kit.Holds(t, files, strings.Join(describe(CheckDocument([]byte(strings.Replace(goodDocument, `"data"`, `"files": `+files+`, "data"`, 1)))), "\n"), want)
	}
}
