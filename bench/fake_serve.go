package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// serveFake is the stand-in's process: it tells its address on stdout, in one line, and serves until ctx ends. dir is
// for its certificate.
func serveFake(ctx context.Context, dir string, o fakeOptions, stdout io.Writer) error {
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	said := struct{ URL, CA string }{URL: "http://" + l.Addr().String()}
	if o.TLS {
		cert, ca, err := certificate(dir)
		if err != nil {
			return errors.Join(fmt.Errorf("make certificate: %w", err), l.Close())
		}
		said.URL, said.CA = "https://"+l.Addr().String(), ca
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
	}
	s, err := newFakeServer(o, said.URL)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if err := json.NewEncoder(stdout).Encode(said); err != nil {
		return errors.Join(err, l.Close())
	}
	srv := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = srv.Close() }) // it keeps nothing: whoever is still there is cut off
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// certificate makes one for this machine that is its own authority.
func certificate(dir string) (cert tls.Certificate, ca string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return cert, "", err
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "vaultbench"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		return cert, "", err
	}
	ca = filepath.Join(dir, "ca.pem")
	err = os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca, err
}

// plainClient is a client that does nothing but what it is told, over so many connections to the stand-in. ca is the
// file with its certificate, empty without TLS.
func plainClient(ca string, connections int) (*http.Client, error) {
	t := &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections, DisableCompression: true, WriteBufferSize: 64 << 10}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("read certificate: %s holds none", ca)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: t}, nil
}
