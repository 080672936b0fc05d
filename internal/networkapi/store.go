package networkapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// How the parts of an upload are named. Assumption: the specification names the parts, and shows no header of theirs. The network
// tells the type of a file by the ending of its name, so the name is sent.
const (
	uploadType  = "multipart/mixed"
	requestPart = `form-data; name="request"`
	filePart    = `form-data; name="file"; filename=`
	fileContent = "application/octet-stream"
)

// File is one file that is to be stored at the network.
type File struct {
	Name   string // with the ending that tells its type; the path before it is not sent
	Type   archive.FileType
	Size   int64
	SHA256 archive.Digest
	Open   func() (io.ReadCloser, error) // called once for each address that the upload is sent to; it reads from the first byte on
}

// StoreFile stores one file of a document at the network, in one POST, and returns the network's number of it. The length is told
// before, and the file is read while it is sent. The same file of the same document is the same request each time, byte for byte.
//
// Bytes that have another digest than f.SHA256 never leave whole; then the error has Damaged. Repeating it after an unknown outcome
// is harmless: a file that no document names is not used.
func (c *Client) StoreFile(ctx context.Context, document archive.RemoteID, f File) (archive.FileID, error) {
	const op = "store a file"
	switch {
	case !document.IsBumID():
		return "", requestError(op, "the number of the document is not one that the network takes")
	case !f.Type.IsKnown():
		return "", requestError(op, "the file has no type that the network knows")
	case f.Size <= 0 || f.SHA256.IsZero():
		return "", requestError(op, "the file is empty or has no digest")
	}
	body, boundary := frameFile(document, f)
	// This is the POST. If the process dies in it, the network may have stored the file. The intent was committed before, and the next
	// start stores it again: the first copy stays unused.
	ans, err := c.api.SendFile(ctx, apicall.Request{Op: op, Method: http.MethodPost, Path: splitPath(filesPath), Limit: smallAnswer,
		Header: http.Header{"Accept": {"application/json"}, "Content-Type": {uploadType + "; boundary=" + boundary}}}, body)
	if err != nil {
		return "", judgeSending(err, aboutFile)
	}
	defer ans.Release()
	if ans.Sent != f.SHA256 {
		return "", ans.Unreadable(op, errors.New("other bytes left than were recorded"))
	}
	id, err := readStoredFile(ans.Body)
	if err != nil {
		return "", ans.Unreadable(op, err)
	}
	return id, nil
}

// frameFile returns the body of an upload. Its boundary is made of the file's digest, which no file contains.
func frameFile(document archive.RemoteID, f File) (body apicall.FileBody, boundary string) {
	boundary = "vaultd-" + f.SHA256.String()[:40]
	request, _ := json.Marshal(struct { // a struct of texts always encodes
		BumID    string `json:"bumId"`
		FileType string `json:"fileType"`
	}{string(document), string(f.Type)})
	var before strings.Builder
	before.WriteString("--" + boundary + "\r\nContent-Disposition: " + requestPart + "\r\nContent-Type: application/json\r\n\r\n")
	before.Write(request)
	before.WriteString("\r\n--" + boundary + "\r\nContent-Disposition: " + filePart + quoteName(f.Name) + "\r\nContent-Type: " + fileContent + "\r\n\r\n")
	return apicall.FileBody{Before: []byte(before.String()), After: []byte("\r\n--" + boundary + "--\r\n"), Size: f.Size, SHA256: f.SHA256, Open: f.Open}, boundary
}

// quoteName writes the last part of a file's name as a parameter of a header. Characters that would end the parameter or the line
// become underscores, so the ending that tells the type stays.
func quoteName(name string) string {
	name = path.Base(strings.ToValidUTF8(name, "_"))
	return `"` + strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '"' || r == '\\' {
			return '_'
		}
		return r
	}, name) + `"`
}

// readStoredFile reads the answer to an upload.
func readStoredFile(body []byte) (archive.FileID, error) {
	f, err := apicall.ReadFields(body, "fileId", "fileID")
	if err != nil {
		return "", err
	}
	id, err := f.Either("fileId", "fileID")
	if err != nil {
		return "", err
	}
	return archive.ParseFileID(apicall.ReadText(id))
}
