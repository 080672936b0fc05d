package networkapi

import (
	"bytes"
	"encoding/json"
	"errors"
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

// I10: the bytes of a document leave as they are, to the path of their kind, once.
func TestSendDocument_I10_BytesLeaveAsTheyAre(t *testing.T) {
	const body = "{\"fileRefs\":[],\"data\": {\"amount\":9007199254740993.10 ,\n\"x\":\"\\u00e4<&>\"}}"
	for kind, want := range map[archive.NetworkKind]string{archive.NetworkInvoice: "/v2/invoices/", archive.NetworkCreditNote: "/v2/creditNotes/"} {
		posts := 0
		c := client(t, func(w http.ResponseWriter, r *http.Request) {
			posts++
			got, _ := io.ReadAll(r.Body)
			user, password, _ := r.BasicAuth()
			if string(got) != body || r.Method != http.MethodPost || r.URL.Path != want+string(bumID) || r.Header.Get("Content-Type") != "application/json" || user != "u" || password != calls.Secret || len(r.Header.Get("X-SVC-REQUEST-ID")) != 36 {
				t.Errorf(`%s %s %q %v, want string(got) = %v, r.Method = http.MethodPost, r.URL.Path = %v, r.Header.Get("Content-Type") = "application/json", user = "u", password = %v, len(r.Header.Get("X-SVC-REQUEST-ID")) = 36`, r.Method, r.URL, got, r.Header, body, want+string(bumID), calls.Secret)
			}
			w.WriteHeader(http.StatusCreated)
		})
		err := c.SendDocument(t.Context(), kind, bumID, []byte(body))
		kit.Check(t, err == nil && posts == 1, "%v, %d calls", err, posts)
	}
	kit.Want(t, "the error of SendDocument",
		New(Config{API: api(t, apicall.Config{Transport: calls.Over(func(_ http.ResponseWriter, r *http.Request) {
			kit.Want(t, "got", r.URL.Path, "/v3/notes/"+string(bumID))
		})}), CreditNotes: "v3/notes/"}).SendDocument(t.Context(), archive.NetworkCreditNote, bumID, []byte(body)), nil)
}

// I12: every 2xx is a success but a page of something that is not the network, and one that tells an error.
func TestSendDocument_I12_WhatIsASuccess(t *testing.T) {
	for body, want := range map[string]bool{
		"": true, "{}": true, "null": true, "ok": true, `{"bumId":"x"}`: true, `[]`: true, `{"error":null,"errors":[]}`: true,
		"<!DOCTYPE html><html><title>Sign in</title></html>": false, `{"errors":{"code":"Error.001.0006"}}`: false, `{"error":{"type":"VALIDATION"}}`: false,
		`<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>`: false, " <Error/>": false,
	} {
		for _, status := range []int{200, 201, 202, 204} {
			err := client(t, calls.Says(status, body)).SendDocument(t.Context(), archive.NetworkInvoice, bumID, []byte("{}"))
			kit.Check(t, (err == nil) == want, "%d %s: %v, want (err == nil) = %v", status, body, err, want)
			if err != nil && calls.Failed(t, err).Outcome != apicall.OutcomeUnknown {
				t.Errorf("%d %s: %v", status, body, calls.Failed(t, err).Outcome)
			}
		}
	}
}

func TestSendDocument_I8_WhatCannotBeSentIsNotSent(t *testing.T) {
	c := client(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	for name, err := range map[string]error{
		"VersionSeven": c.SendDocument(t.Context(), archive.NetworkInvoice, "10d90000-0000-7000-8000-00000000000a", []byte("{}")),
		"CapitalId":    c.SendDocument(t.Context(), archive.NetworkInvoice, "10D90000-0000-5000-8000-00000000000A", []byte("{}")),
		"NoId":         c.SendDocument(t.Context(), archive.NetworkInvoice, "", []byte("{}")),
		"NoKind":       c.SendDocument(t.Context(), "", bumID, []byte("{}")),
		"NoBody":       c.SendDocument(t.Context(), archive.NetworkInvoice, bumID, nil),
	} {
		e := calls.Failed(t, err)
		kit.Check(t, e.Outcome == apicall.NotSent && e.Code == "request", `%s: %v, want e.Outcome = apicall.NotSent, e.Code = "request"`, name, e)
	}
}

// wrapped returns an error body in one of the two wrappers.
func wrapped(wrapper, class, code string) string {
	return `{"version":"1.0","` + wrapper + `":{"id":"0f8fad5b-d9cb-469f-a165-70867728950e","type":"` + class + `","message":"m","code":"` + code + `","info":"call support","validationErrors":[{"fieldId":"data.issueDate","fieldMessage":"no date"}]}}`
}

// I24: what a refusal means follows from the network's code. Only what is about the document rejects it.
func TestSendDocument_I24_RefusalByCode(t *testing.T) {
	for _, r := range []struct {
		name, class, code string
		status            int
		want              apicall.Outcome
	}{
		{"ReceiverUnknown", "BUSINESS", "Error.001.0001", 400, apicall.Refused},
		{"ServiceNotEnabled", "BUSINESS", "Error.001.0012", 400, apicall.NotProcessed},
		{"UnknownNumber", "VALIDATION", "Error.003.0001", 404, apicall.NotProcessed},
		{"FileType", "VALIDATION", "Error.003.0020", 400, apicall.NotProcessed},
		{"NumberExists", "VALIDATION", "Error.003.0038", 409, apicall.Refused},
		{"FieldMissing", "VALIDATION", "Error.004.0002", 400, apicall.Refused},
		{"NumberInvalid", "VALIDATION", "Error.004.0003", 400, apicall.NotProcessed},
		{"NoJSON", "VALIDATION", "Error.004.0004", 400, apicall.NotProcessed},
		{"Ending", "VALIDATION", "Error.004.0005", 415, apicall.Refused},
		{"TooLarge", "VALIDATION", "Error.004.0012", 413, apicall.Refused},
		{"Party", "VALIDATION", "Error.004.0013", 422, apicall.Refused},
		{"IBAN", "VALIDATION", "Error.004.0014", 400, apicall.Refused},
		{"NewCodeOfAFault", "VALIDATION", "Error.009.0001", 400, apicall.Refused},
		{"NewCodeOfBusiness", "BUSINESS", "Error.009.0001", 400, apicall.NotProcessed},
		{"NewCodeOfSecurity", "SECURITY", "Error.009.0001", 400, apicall.NotProcessed},
		{"SystemError", "TECHNICAL", "Error.001.0006", 400, apicall.OutcomeUnknown},
		{"Technical", "TECHNICAL", "Error.001.0010", 500, apicall.OutcomeUnknown},
		{"FileLostThere", "TECHNICAL", "Error.003.0032", 400, apicall.OutcomeUnknown},
		{"NewTechnicalCode", "TECHNICAL", "Error.009.0001", 400, apicall.OutcomeUnknown},
		{"Virus", "SECURITY", "Error.002.0004", 400, apicall.Refused},
		{"VirusWithoutRight", "SECURITY", "Error.002.0004", 403, apicall.Refused},
		{"WithoutRight", "VALIDATION", "Error.009.0001", 403, apicall.NotProcessed},
		{"WithoutCredentials", "SECURITY", "", 401, apicall.NotProcessed},
		{"FaultWithoutCredentials", "VALIDATION", "Error.004.0002", 401, apicall.NotProcessed},
		{"VirusWithoutCredentials", "SECURITY", "Error.002.0004", 401, apicall.NotProcessed},
		{"NumberExistsWithoutCredentials", "VALIDATION", "Error.003.0038", 401, apicall.NotProcessed},
		{"NumberExistsWithoutRight", "VALIDATION", "Error.003.0038", 403, apicall.NotProcessed},
		{"NumberExistsWithServerError", "VALIDATION", "Error.003.0038", 500, apicall.OutcomeUnknown},
		{"FaultWithServerError", "VALIDATION", "Error.004.0002", 500, apicall.OutcomeUnknown},
		{"TooManyCalls", "VALIDATION", "Error.004.0002", 429, apicall.OutcomeUnknown},
	} {
		for _, wrapper := range []string{"error", "errors"} {
			t.Run(r.name+"/"+wrapper, func(t *testing.T) {
				err := client(t, calls.Says(r.status, wrapped(wrapper, r.class, r.code))).SendDocument(t.Context(), archive.NetworkInvoice, bumID, []byte("{}"))
				e := calls.Failed(t, err)
				kit.Check(t, e.Outcome == r.want && (e.ServiceCode == r.code || r.code == "") && AlreadyExists(err) == (r.name == "NumberExists"),
					"%v, code %q: %v", e.Outcome, e.ServiceCode, err)
				kit.Check(t, !e.Denied || e.Outcome != apicall.Refused,
					"a refused document is taken for a lack of rights")
				if r.code != "" && (e.ErrorID != "0f8fad5b-d9cb-469f-a165-70867728950e" || !strings.Contains(err.Error(), "error id "+e.ErrorID) || e.Field != "data.issueDate" || !strings.Contains(e.Message, "no date")) {
					t.Errorf("support cannot find it: %q, field %q", err, e.Field)
				}
			})
		}
	}
}

// I24: other forms of errors, of gateways and of other parts of the service.
func TestSendDocument_I24_RefusalWithoutCode(t *testing.T) {
	for _, r := range []struct {
		body   string
		status int
		want   apicall.Outcome
	}{
		{`{"message":"Unauthorized"}`, 401, apicall.NotProcessed},
		{`{"Message":"User is not authorized"}`, 403, apicall.NotProcessed},
		{`{"detail":"bad"}`, 400, apicall.Refused},
		{`{"detail":[{"loc":["body","x"],"msg":"m","type":"t"}]}`, 422, apicall.Refused},
		{`{"requestId":"r","hasError":true,"errorMessages":[{"type":"VALIDATION","code":"c","message":"m"}]}`, 400, apicall.Refused},
		{`{"message":"no route"}`, 404, apicall.NotProcessed},
		{`<html><title>Bad Request</title></html>`, 400, apicall.NotProcessed},
		{`<html><title>Too large</title></html>`, 413, apicall.NotProcessed},
		{``, 400, apicall.Refused}, {``, 404, apicall.NotProcessed}, {``, 405, apicall.NotProcessed}, {``, 415, apicall.NotProcessed},
		{``, 408, apicall.OutcomeUnknown}, {``, 502, apicall.OutcomeUnknown}, {`<Error><Code>x</Code></Error>`, 503, apicall.OutcomeUnknown},
	} {
		err := client(t, calls.Says(r.status, r.body)).SendDocument(t.Context(), archive.NetworkInvoice, bumID, []byte("{}"))
		if e := calls.Failed(t, err); e.Outcome != r.want || AlreadyExists(err) {
			t.Errorf("%d %s: %v, want e.Outcome = %v, not AlreadyExists(err)", r.status, r.body, e.Outcome, r.want)
		}
	}
	broken := New(Config{API: api(t, apicall.Config{Transport: calls.Transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset") })})})
	e := calls.Failed(t, broken.SendDocument(t.Context(), archive.NetworkInvoice, bumID, []byte("{}")))
	kit.Check(t, e.Outcome == apicall.OutcomeUnknown && !AlreadyExists(e) && !AlreadyExists(nil), "a reply that was lost is %v", e.Outcome)
}

// I7: what an error answer repeats of the request is no secret that shows.
func TestSendDocument_I7_HidesSecrets(t *testing.T) {
	err := client(t, calls.Says(400, `{"error":{"id":"`+calls.Secret+`","message":"password=`+calls.Secret+` at https://x.example/k?X-Amz-Signature=`+calls.Signature+`","code":"`+calls.Secret+`"}}`)).
		SendDocument(t.Context(), archive.NetworkInvoice, bumID, []byte(`{"data":"`+calls.Content+`"}`))
	calls.Failed(t, err)
}

const bumID archive.RemoteID = "10d90000-0000-5000-8000-00000000000a"

// client returns a client whose requests h answers, for every host.
func client(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	return New(Config{API: api(t, apicall.Config{Transport: calls.Over(h)})})
}

func api(t *testing.T, cfg apicall.Config) *apicall.API {
	t.Helper()
	api, _ := calls.New(t, cfg)
	return api
}

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
		kit.Need(t, err == nil && request.FormName() == "request" && request.Header.Get("Content-Type") == "application/json",
			"the first part is %+v, %v", request, err)
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
