package networkapi

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

func fileOf(name, content string) File {
	return File{Name: name, Type: archive.ImageFile, Size: int64(len(content)), SHA256: archive.Sum([]byte(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}

// I4: the parts of an upload are what the specification says, the file is byte for byte itself, and the length is told.
func TestStoreFile_I4_Parts(t *testing.T) {
	content := "%PDF-1.7\r\n--vaultd-\r\n" + strings.Repeat("\x00\xff", 50_000)
	var bodies [][]byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole, _ := io.ReadAll(r.Body)
		bodies = append(bodies, whole)
		kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "multipart/mixed" || r.Method != http.MethodPost || r.URL.Path != "/v2/files" || r.ContentLength != int64(len(whole)) || len(r.TransferEncoding) > 0 {
			t.Errorf("%s %s, %q, length %d of %d, %v", r.Method, r.URL, kind, r.ContentLength, len(whole), err)
		}
		parts := multipart.NewReader(bytes.NewReader(whole), parameters["boundary"])
		request, err := parts.NextPart()
		if err != nil || request.FormName() != "request" || request.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("the first part is %+v, %v", request, err)
		}
		var fields map[string]string
		if err := json.NewDecoder(request).Decode(&fields); err != nil || len(fields) != 2 || fields["bumId"] != string(bumID) || fields["fileType"] != "imageFile" {
			t.Errorf("the request is %v, %v", fields, err)
		}
		file, err := parts.NextPart()
		kit.Need(t, err == nil && file.FormName() == "file" && file.FileName() == "Rechnung _ü__.pdf",
			"the second part is %+v, %v", file, err)
		kit.Want(t, "string(got)", string(kit.Value(io.ReadAll(file))(t)), content)
		_, err = parts.NextPart()
		kit.Check(t, err == io.EOF, "after the second part: %v", err)
		io.WriteString(w, `{"version":"1.0","fileId":"54759eb3c090d83494e2d804"}`)
	}))
	defer srv.Close()
	c := New(Config{API: api(t, apicall.Config{BaseURL: srv.URL})})
	for range 2 {
		id, err := c.StoreFile(t.Context(), bumID, fileOf("folder/Rechnung \"ü\"\n.pdf", content))
		kit.Need(t, err == nil && id == "54759eb3c090d83494e2d804", "got %q, %v", id, err)
	}
	kit.Check(t, bytes.Equal(bodies[0], bodies[1]), "the same file was two requests")
}

// I4: bytes that are not the recorded ones never leave whole.
func TestStoreFile_I4_OtherBytesNeverLeaveWhole(t *testing.T) {
	var got int64
	done := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer close(done)
		got, _ = io.Copy(io.Discard, r.Body)
	}))
	content := strings.Repeat(calls.Content, 20_000)
	f := fileOf("a.pdf", content)
	f.Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("X" + content[1:])), nil }
	_, err := New(Config{API: api(t, apicall.Config{BaseURL: srv.URL})}).StoreFile(t.Context(), bumID, f)
	e := calls.Failed(t, err)
	kit.Check(t, e.Damaged && e.Code == "file-damaged", `%v, want e.Damaged, e.Code = "file-damaged"`, e)
	<-done
	srv.Close()
	kit.Check(t, got < int64(len(content)), "%d bytes left", got)
}

func TestStoreFile_Answers(t *testing.T) {
	for body, want := range map[string]archive.FileID{
		`{"version":"1.0","fileId":"f-1"}`: "f-1", `{"fileId":7}`: "7", `{"fileID":"f-1","new":[]}`: "f-1", "\xef\xbb\xbf{\"fileId\":\"f-1\"}": "f-1",
		``: "", `{}`: "", `{"fileId":null}`: "", `{"fileId":"../x"}`: "", `{"fileId":"a","fileID":"b"}`: "", `<html></html>`: "", `[]`: "",
	} {
		id, err := client(t, calls.Says(200, body)).StoreFile(t.Context(), bumID, fileOf("a.pdf", "x"))
		kit.Check(t, id == want && (err == nil) == (want != ""), "%q gives %q, %v", body, id, err)
		if err != nil && calls.Failed(t, err).Outcome != apicall.OutcomeUnknown {
			t.Errorf("%q: %v", body, calls.Failed(t, err).Outcome)
		}
	}
	if e := calls.Failed(t, second(client(t, calls.Says(403, wrapped("error", "SECURITY", "Error.002.0004"))).StoreFile(t.Context(), bumID, fileOf("a.pdf", "x")))); e.Outcome != apicall.Refused || e.Denied {
		t.Errorf("a virus is %v", e.Outcome)
	}
}

func second[T any](_ T, err error) error { return err }

func TestStoreFile_WhatCannotBeStoredIsNotSent(t *testing.T) {
	c := client(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	good := fileOf("a.pdf", "x")
	noType, empty, noDigest := good, fileOf("a.pdf", ""), good
	noType.Type, noDigest.SHA256 = "pdf", archive.Digest{}
	for name, err := range map[string]error{
		"Number": second(c.StoreFile(t.Context(), "x", good)), "Type": second(c.StoreFile(t.Context(), bumID, noType)),
		"Empty": second(c.StoreFile(t.Context(), bumID, empty)), "Digest": second(c.StoreFile(t.Context(), bumID, noDigest)),
	} {
		e := calls.Failed(t, err)
		kit.Check(t, e.Outcome == apicall.NotSent, "%s: %v, want e.Outcome = apicall.NotSent", name, e)
	}
}
