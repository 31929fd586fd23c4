package signal

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// certificate writes one for the names and returns its files and the pool that trusts it.
func certificate(t *testing.T, names ...string) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(leaf)
	return certFile, keyFile, pool
}

// TestTLS runs over real sockets: a client that would rather speak HTTP/2 gets its WebSocket.
func TestTLS(t *testing.T) {
	certFile, keyFile, pool := certificate(t, "signal.example", "*.example")
	l, err := Listen(t.Context(), ListenOptions{Host: "127.0.0.1", CertFile: certFile, KeyFile: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	if got := l.Servers(); len(got) != 1 || got[0].String() != "wss://signal.example:"+strconv.Itoa(l.Server().Port) {
		t.Errorf("servers: got %v", got)
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer tr.CloseIdleConnections()
	conn, _, err := websocket.Dial(ctx, l.Server().socketURL("a", "t"), &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if m := rawRead(t, conn); m.Type != TypeOpen {
		t.Errorf("got %v, want OPEN", m)
	}
	offer := &tls.Config{RootCAs: pool, NextProtos: []string{"h2", "http/1.1"}}
	raw, err := (&tls.Dialer{Config: offer}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	if got := raw.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("a browser that offers h2 gets %q: no WebSocket for it", got)
	}
	// our client knows nobody who vouches for this certificate
	if _, err := Open(ctx, Options{Servers: []Server{l.Server()}}); !errors.Is(err, ErrDown) {
		t.Errorf("untrusted certificate: got %v, want ErrDown", err)
	}
}

func TestCertificateFiles(t *testing.T) {
	certFile, keyFile, _ := certificate(t)
	for _, c := range []struct{ cert, key string }{{certFile, ""}, {"", keyFile}, {certFile, certFile}, {keyFile, keyFile}, {"none", "none"}} {
		if _, err := Listen(t.Context(), ListenOptions{Host: "127.0.0.1", CertFile: c.cert, KeyFile: c.key}); !errors.Is(err, ErrCertificate) {
			t.Errorf("%v: got %v, want ErrCertificate", c, err)
		}
	}
}

func TestReachable(t *testing.T) {
	var addrs []net.Addr
	for _, s := range []string{"127.0.0.1/8", "2001:db8::5/64", "fe80::1/64", "192.168.1.5/24", "::1/128", "169.254.3.4/16", "10.0.0.2/8"} {
		ip, network, err := net.ParseCIDR(s)
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, &net.IPNet{IP: ip, Mask: network.Mask})
	}
	var want []netip.Addr
	for _, s := range []string{"192.168.1.5", "10.0.0.2", "2001:db8::5"} {
		want = append(want, netip.MustParseAddr(s))
	}
	if got := reachable(addrs); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestServersOfEveryAddress(t *testing.T) {
	l, err := Listen(t.Context(), ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.ln.Close() }()
	got := l.Servers()
	if last := got[len(got)-1]; last.Host != "127.0.0.1" || last.Port != l.Server().Port {
		t.Errorf("last: got %v, want loopback", last)
	}
	for _, s := range got {
		if s.Host == "[::]" || s.Host == "0.0.0.0" {
			t.Errorf("%v is no address to dial", s)
		}
	}
}
