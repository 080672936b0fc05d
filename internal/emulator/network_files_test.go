package emulator

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// A file comes in exactly two parts; everything else is refused with its code.
func TestNetworkFile_Refused(t *testing.T) {
	id := bumID(1)
	request := fmt.Sprintf(`{"bumId":%q,"fileType":"imageFile"}`, id)
	file := fileParts(request, "a.pdf", "%PDF")[1]
	for name, row := range map[string]struct {
		parts []filePart
		want  string
	}{
		"Good":          {fileParts(request, "a.pdf", "%PDF"), "200"},
		"CapitalEnding": {fileParts(request, "a.TIFF", "II"), "200"},
		"OneField":      {fileParts(`{"bumId":"`+id+`"}`, "a.pdf", "%PDF"), "400 004.0002"},
		"ThreeFields":   {fileParts(strings.Replace(request, "{", `{"name":"a",`, 1), "a.pdf", "%PDF"), "400 004.0002"},
		"NoObject":      {fileParts(`[]`, "a.pdf", "%PDF"), "400 004.0004"},
		"v7":            {fileParts(strings.Replace(request, id, "01890000-0000-7000-8000-000000000001", 1), "a.pdf", "%PDF"), "400 004.0003"},
		"FileType":      {fileParts(strings.Replace(request, "imageFile", "image", 1), "a.pdf", "%PDF"), "400 003.0020"},
		"Ending":        {fileParts(request, "a.heic", "x"), "400 004.0005"},
		"NoName":        {fileParts(request, "", "x"), "400 004.0005"},
		"TooLarge":      {fileParts(request, "a.pdf", strings.Repeat("x", 101)), "413 004.0012"},
		"Virus":         {fileParts(request, "a.pdf", "%PDF "+VirusMarker), "400 002.0004"},
		"OtherOrder":    {[]filePart{file, fileParts(request, "", "")[0]}, "400 004.0004"},
		"OnlyRequest":   {fileParts(request, "", "")[:1], "400 004.0004"},
		"ThirdPart":     {append(fileParts(request, "a.pdf", "%PDF"), file), "400 004.0004"},
		"TextRequest":   {[]filePart{{`form-data; name="request"`, "text/plain", request}, file}, "400 004.0004"},
	} {
		w := newNetworkWorld(t, func(c *Config) { c.Network.MaxFile = 100 })
		kit.Want(t, name, w.codeOf(w.postParts(row.parts)), row.want)
		w.wantNoViolations()
	}
	w := newNetworkWorld(t, nil)
	for _, header := range []string{"multipart/form-data; boundary=x", "multipart/mixed", "application/json"} {
		kit.Want(t, header, w.codeOf(w.net("POST", "/v2/files", "--x--", "Content-Type: "+header)), "400 004.0004")
	}
}

// The marker is found wherever the pieces end in which a body is read.
func TestMarkerScanner(t *testing.T) {
	text := "begin " + VirusMarker + " end"
	for size := 1; size < len(text); size++ {
		m := &markerScanner{marker: []byte(VirusMarker)}
		for at := 0; at < len(text); at += size {
			_, _ = m.Write([]byte(text[at:min(at+size, len(text))]))
		}
		kit.Check(t, m.found, "pieces of %d bytes: not found", size)
	}
}

// A stored file can be fetched from both versions, as bytes or in Base64. Parts of it cannot.
func TestNetworkFile_Fetched(t *testing.T) {
	content := strings.Repeat("%PDF-1.7 content ", 10)
	for _, form := range []string{"binary", "base64"} {
		w := newNetworkWorld(t, func(c *Config) { c.Readings.Network.Files = form })
		ref := w.mustStore(bumID(1), "a.pdf", content)
		for _, version := range []string{"/v1", "/v2"} {
			a := w.net("GET", version+"/files/"+ref, "", "Range: bytes=5-9")
			got := a.body
			if form == "base64" {
				raw := kit.Value(base64.StdEncoding.DecodeString(a.body))(t)
				got = string(raw)
			}
			if a.status != 200 || got != content || a.header.Get("Content-Type") != "application/pdf;charset=utf-8" {
				t.Errorf(`%s: %+v, want a.status = 200, got = %v, a.header.Get("Content-Type") = "application/pdf;charset=utf-8"`, form, a, content)
			}
		}
		kit.Want(t, "an unknown file", w.codeOf(w.net("GET", "/v2/files/none", "")), "404 003.0001")
	}
}

// A file may come in Base64, and is kept as what that means. A damaged one is refused.
func TestNetworkFile_Base64Upload(t *testing.T) {
	w := newNetworkWorld(t, nil)
	post := func(content string) answer {
		body := strings.Join([]string{"--x", `Content-Disposition: form-data; name="request"`, "Content-Type: application/json", "",
			fmt.Sprintf(`{"bumId":%q,"fileType":"dataFile"}`, bumID(1)), "--x", `Content-Disposition: form-data; name="file"; filename="a.xml"`,
			"Content-Transfer-Encoding: base64", "", content, "--x--", ""}, "\r\n")
		return w.net("POST", "/v2/files", body, "Content-Type: multipart/mixed; boundary=x")
	}
	a := post(base64.StdEncoding.EncodeToString([]byte("<a/>")))
	var got struct{ FileID string }
	w.decode(a, &got)
	if file := w.net("GET", "/v2/files/"+got.FileID, ""); file.body != "<a/>" || !strings.HasPrefix(file.header.Get("Content-Type"), "application/xml") {
		t.Errorf("file: %+v", file)
	}
	kit.Want(t, "damaged", w.codeOf(post("no base64!")), "400 004.0004")
}

// Each misuse of a file is a violation.
func TestNetworkFile_Violations(t *testing.T) {
	for name, row := range map[string]struct {
		act  func(w *world)
		want string
	}{
		"Capitals": {func(w *world) {
			w.postFile(strings.ToUpper(bumID(1)), "imageFile", "a.pdf", "%PDF")
		}, "which has capitals"},
		"NeverStored": {func(w *world) {
			w.net("POST", invoicesPath+"/"+bumID(1), invoice("", "aaaaaaaaaaaaaaaaaaaaaaaa"))
		}, "which was never stored"},
		"OfAnother": {func(w *world) {
			w.net("POST", invoicesPath+"/"+bumID(1), invoice("", w.mustStore(bumID(2), "a.pdf", "%PDF")))
		}, "which was stored for " + bumID(2)},
		"OfAReceivedOne": {func(w *world) {
			w.mustPublish(ReceivedDocument{Data: []byte(`{}`), Files: []ReceivedFile{{Name: "a.pdf"}}})
			w.net("POST", invoicesPath+"/"+bumID(1), invoice("", w.ReceivedDocuments()[0].Files[0].ID))
		}, "which was never stored"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNetworkWorld(t, nil)
			row.act(w)
			w.wantViolation(row.want)
			kit.Want(t, "the document was accepted", len(w.SentDocuments()), 0)
		})
	}
}
