package emulator

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// VirusMarker is the text that makes a file a virus for the network. It stands for what virus scanners use for their tests, and harms nobody.
const VirusMarker = "EMULATED-VIRUS-STANDARD-TEST-FILE"

var (
	// fileTypes are the roles that a file of a document may have.
	fileTypes = []string{"imageFile", "attachmentFile", "dataFile"}
	// fileEndings are the endings of the files that the network takes.
	fileEndings = []string{"csv", "doc", "docx", "htm", "html", "jpeg", "jpg", "odt", "pdf", "png", "ppt", "pptx", "rtf", "tif", "tiff", "txt", "xls", "xlsx", "xml", "zip"}
)

// maxFileRequest bounds the part that says what a file is, in bytes.
const maxFileRequest = 64 << 10

// storeNetworkFile takes one file in two parts: "request" says what it is, "file" is its content. A file is kept for its bumId, whether or
// not a document of that number ever comes. A file that comes again gets another id.
func (s *Server) storeNetworkFile(c *call) reply {
	kind, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" || params["boundary"] == "" {
		return c.networkRefusal("Error.004.0004", "Content-Type must be multipart/mixed with a boundary")
	}
	parts := multipart.NewReader(c.Body, params["boundary"])
	f, problem := s.readFileRequest(c, parts)
	if problem == nil {
		problem = s.readFilePart(parts, &f)
	}
	if problem != nil {
		return c.refuseProblems([]networkProblem{*problem})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.ID = s.drawHex(12)
	c.record.BumIDs, c.record.SHA256, c.record.Size = []string{f.BumID}, f.SHA256, f.Size
	// A kill before this line leaves bytes that belong to no file. One after it leaves a file whose id nobody knows.
	if err := s.commitLines(journalLine{Time: c.now, Kind: kindNetworkFile, Network: &networkLine{Files: []NetworkFile{f}}}); err != nil {
		return reply{}
	}
	return jsonReply(map[string]any{"version": "1.0", "fileId": f.ID})
}

// readFileRequest reads the part that says what a file is.
func (s *Server) readFileRequest(c *call, parts *multipart.Reader) (f NetworkFile, problem *networkProblem) {
	part, _, problem := nextPart(parts, "request")
	if problem != nil {
		return f, problem
	}
	if t, _, err := mime.ParseMediaType(part.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return f, &networkProblem{"Error.004.0004", "request", "the part must have the Content-Type application/json"}
	}
	body, err := io.ReadAll(io.LimitReader(part, maxFileRequest+1))
	var have map[string]json.RawMessage
	if err != nil || len(body) > maxFileRequest || !utf8.Valid(body) || json.Unmarshal(body, &have) != nil || hasTwins(body) {
		return f, &networkProblem{"Error.004.0004", "request", "the part is not one JSON object"}
	}
	var hasID, hasType bool
	f.BumID, hasID = textField(have, "bumId")
	f.FileType, hasType = textField(have, "fileType")
	if bumIDPattern.MatchString(strings.ToLower(f.BumID)) && f.BumID != strings.ToLower(f.BumID) {
		s.recordViolation(c, "a file under bumId %s, which has capitals", f.BumID)
	}
	switch {
	case !hasID || !hasType || len(have) != 2:
		return f, &networkProblem{"Error.004.0002", "request", "the part must have bumId and fileType, and nothing else"}
	case !bumIDPattern.MatchString(f.BumID):
		return f, &networkProblem{"Error.004.0003", "bumId", "the format of the bumId is invalid"}
	case !slices.Contains(fileTypes, f.FileType):
		return f, &networkProblem{"Error.003.0020", "fileType", "the type of the file is none of imageFile, attachmentFile and dataFile"}
	}
	return f, nil
}

// textField returns a field that is a text; ok is false where it is none, or is missing.
func textField(have map[string]json.RawMessage, name string) (text string, ok bool) {
	raw, told := have[name]
	if !told {
		return "", false
	}
	return asString(raw)
}

// nextPart returns the next part, which must have a name, and the name of its file.
func nextPart(parts *multipart.Reader, name string) (*multipart.Part, string, *networkProblem) {
	part, err := parts.NextRawPart()
	if err != nil {
		return nil, "", &networkProblem{"Error.004.0004", name, "the part is missing, or the body ends early"}
	}
	_, said, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil || said["name"] != name {
		return nil, "", &networkProblem{"Error.004.0004", name, "the part in this place must have this name in its Content-Disposition"}
	}
	return part, said["filename"], nil
}

// readFilePart reads the content of a file into the store, to the end of the body.
func (s *Server) readFilePart(parts *multipart.Reader, f *NetworkFile) *networkProblem {
	part, name, problem := nextPart(parts, "file")
	if problem != nil {
		return problem
	}
	if f.Name = name; !slices.Contains(fileEndings, strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))) {
		return &networkProblem{"Error.004.0005", "file", "the name of the file ends in no type that the network supports"}
	}
	content := io.Reader(part)
	switch strings.ToLower(part.Header.Get("Content-Transfer-Encoding")) {
	case "", "binary", "8bit":
	case "base64":
		content = base64.NewDecoder(base64.StdEncoding, part)
	default:
		return &networkProblem{"Error.004.0004", "file", "the transfer encoding is unknown"}
	}
	incoming, err := os.CreateTemp(s.objectsDir(), "incoming-*")
	if err != nil {
		return storeFailed()
	}
	// After the rename below there is nothing to remove. A kill before it leaves the file, which the next server removes.
	defer os.Remove(incoming.Name())
	sum, scan := sha256.New(), &markerScanner{marker: []byte(VirusMarker)}
	n, err := io.Copy(io.MultiWriter(incoming, sum, scan), io.LimitReader(content, s.cfg.Network.MaxFile+1))
	if errClose := incoming.Close(); errClose != nil {
		return storeFailed()
	}
	f.Size, f.SHA256 = n, hex.EncodeToString(sum.Sum(nil))
	if n > s.cfg.Network.MaxFile {
		return &networkProblem{"Error.004.0012", "file", fmt.Sprintf("the file has more than %d bytes", s.cfg.Network.MaxFile)}
	}
	if err == nil {
		_, err = parts.NextRawPart()
	}
	switch {
	case !errors.Is(err, io.EOF):
		return &networkProblem{"Error.004.0004", "file", "the body ends early, or has more than two parts"}
	case scan.found:
		return &networkProblem{"Error.002.0004", "file", "the file violates the security rules"}
	case os.Rename(incoming.Name(), s.objectPath(f.SHA256)) != nil:
		return storeFailed()
	}
	return nil
}

func storeFailed() *networkProblem {
	return &networkProblem{"Error.003.0032", "file", "the file could not be stored"}
}

// markerScanner searches for a text in what is written to it.
type markerScanner struct {
	marker, tail []byte
	found        bool
}

func (m *markerScanner) Write(p []byte) (int, error) {
	// The text may begin in one piece and end in the next.
	seam := append(m.tail, p[:min(len(p), len(m.marker))]...)
	m.found = m.found || bytes.Contains(p, m.marker) || bytes.Contains(seam, m.marker)
	if len(p) < len(m.marker) {
		m.tail = seam[max(0, len(seam)-len(m.marker)):]
	} else {
		m.tail = slices.Clone(p[len(p)-len(m.marker):])
	}
	return len(p), nil
}

// fetchNetworkFile answers with a file, in the form of the readings.
func fetchNetworkFile(v version) handler {
	return func(s *Server, c *call) reply {
		if c.reading.Network.ValidationAt == v.word() && s.hasValidationFile(c.PathValue("fileId")) {
			return s.answerValidationFile(c, c.PathValue("fileId"))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		f := s.state.network.files[c.PathValue("fileId")]
		if f == nil || s.isOfReceived(f) && !c.reading.Network.knowsReceived(v) {
			return c.networkRefusal("Error.003.0001", "no file with this id")
		}
		c.record.BumIDs, c.record.SHA256, c.record.Size = []string{f.BumID}, f.SHA256, f.Size
		if c.fault.leavesAnswerWhole() && !f.WasSent {
			if err := s.commitLines(journalLine{Time: c.now, Kind: kindNetworkFileSent, Network: &networkLine{FileID: f.ID}}); err != nil {
				return reply{}
			}
		}
		c.Header.Del("Range") // the service knows no parts of files
		rep := reply{status: 200, header: http.Header{"Content-Type": {contentTypeOf(f.Name) + ";charset=utf-8"}}, file: s.objectPath(f.SHA256)}
		if c.reading.Network.FileHeaders == "all" {
			rep.header = http.Header{"Content-Type": {fullTypeOf(f.Name)}, "Content-Disposition": {mime.FormatMediaType("attachment", map[string]string{"filename": f.Name})}}
		}
		if c.reading.Network.Files == "base64" {
			rep = rep.loadFile()
			rep.body = []byte(base64.StdEncoding.EncodeToString(rep.body))
			if c.reading.Network.FileHeaders == "all" {
				rep.header.Set("Content-Transfer-Encoding", "base64")
			}
		}
		return rep
	}
}

// isOfReceived reports whether a file is one of a document that the client receives. The caller holds mu.
func (s *Server) isOfReceived(f *NetworkFile) bool {
	d := s.state.network.documents[f.BumID]
	return d != nil && d.isReceived
}

// contentTypeOf returns the content type of a file by its name.
func contentTypeOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".pdf":
		return "application/pdf"
	case ".xml":
		return "application/xml"
	}
	return "application/octet-stream"
}

// fullTypes are the content types of files that have others than [contentTypeOf] tells.
var fullTypes = map[string]string{
	".csv": "text/csv; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".htm": "text/html; charset=utf-8", ".html": "text/html; charset=utf-8",
	".doc": "application/msword", ".rtf": "application/rtf", ".zip": "application/zip",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document", ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}

// fullTypeOf returns the content type of a file by its name.
func fullTypeOf(name string) string {
	if t, ok := fullTypes[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return contentTypeOf(name)
}

// validationAtFiles is the reading with the path of validation files that the specification has.
const validationAtFiles = "files"

func (s *Server) fetchValidationFile(c *call) reply {
	if c.reading.Network.ValidationAt != validationAtFiles {
		return c.networkRefusal("Error.003.0001", "no such path")
	}
	return s.answerValidationFile(c, c.PathValue("fileReference"))
}

func (s *Server) hasValidationFile(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.network.validationFiles[id] != nil
}

// answerValidationFile answers with the file that says why the content of a document is invalid.
func (s *Server) answerValidationFile(c *call, id string) reply {
	s.mu.Lock()
	n, known := s.state.network.validationFiles[id]
	s.mu.Unlock()
	if !known || c.now.Before(n.At.Add(s.cfg.Network.ValidationAfter)) {
		return c.networkRefusal("Error.003.0001", "no file with this reference")
	}
	c.record.BumIDs = []string{n.BumID}
	rep := reply{status: 200, header: http.Header{"Content-Type": {"application/xml"}}, body: ValidationFileOf(n.BumID)}
	if c.reading.Network.Files == "base64" {
		rep.body = []byte(base64.StdEncoding.EncodeToString(rep.body))
	}
	return rep
}

// ValidationFileOf returns what the check of a document found, where that found something.
func ValidationFileOf(bumID string) []byte {
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<validation document=%q><error rule="BR-CO-15" field="taxTotal">The amounts do not add up.</error></validation>
`, bumID)
}
