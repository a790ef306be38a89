// An RTSP server that programs publish to and others play from, as MediaMTX is one, made of the same library. It takes one
// command a line on stdin, as JSON, and answers each with a line on stdout.
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/auth"
	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/pion/rtp"
)

const realm = "cameras"

type command struct {
	Do string `json:"do"`
	// 0 for any.
	Port int `json:"port"`
	// Readers get their media by UDP alone; else by TCP alone.
	UDP bool `json:"udp"`
	// RTSPS with a certificate of its own.
	TLS bool `json:"tls"`
	// How readers are asked for their password: basic, digest, digest-sha256; not at all for none.
	Auth     string `json:"auth"`
	User     string `json:"user"`
	Password string `json:"password"`
}

var methods = map[string]auth.ValidateMethod{
	"basic":         auth.ValidateMethodBasic,
	"digest":        auth.ValidateMethodDigestMD5,
	"digest-sha256": auth.ValidateMethodSHA256,
}

// One stream a path, as long as its publisher stays.
type handler struct {
	server  *gortsplib.Server
	options command
	nonce   string
	mutex   sync.Mutex
	streams map[string]*published
	// What readers have been given, in the order of their requests.
	transports []string
	refused    int
}

type published struct {
	stream    *gortsplib.ServerStream
	publisher *gortsplib.ServerSession
}

func (h *handler) streamOf(path string) *gortsplib.ServerStream {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if found, ok := h.streams[path]; ok {
		return found.stream
	}
	return nil
}

// A reader that has not given the password is asked for it; nil lets it through.
func (h *handler) asked(request *base.Request) *base.Response {
	method, ok := methods[h.options.Auth]
	if !ok {
		return nil
	}
	wanted := []auth.ValidateMethod{method}
	if auth.Validate(request, h.options.User, h.options.Password, wanted, realm, h.nonce) == nil {
		return nil
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.refused++
	return &base.Response{
		StatusCode: base.StatusUnauthorized,
		Header:     base.Header{"WWW-Authenticate": auth.GenerateWWWAuthenticate(wanted, realm, h.nonce)},
	}
}

func (h *handler) OnSessionClose(ctx *gortsplib.ServerHandlerOnSessionCloseCtx) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for path, one := range h.streams {
		if one.publisher == ctx.Session {
			one.stream.Close() // its readers are disconnected
			delete(h.streams, path)
		}
	}
}

func (h *handler) OnDescribe(
	ctx *gortsplib.ServerHandlerOnDescribeCtx,
) (*base.Response, *gortsplib.ServerStream, error) {
	if refusal := h.asked(ctx.Request); refusal != nil {
		return refusal, nil, nil
	}
	stream := h.streamOf(ctx.Path)
	if stream == nil {
		return &base.Response{StatusCode: base.StatusNotFound}, nil, nil
	}
	return &base.Response{StatusCode: base.StatusOK}, stream, nil
}

func (h *handler) OnAnnounce(ctx *gortsplib.ServerHandlerOnAnnounceCtx) (*base.Response, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if _, ok := h.streams[ctx.Path]; ok {
		return &base.Response{StatusCode: base.StatusBadRequest}, errors.New("somebody publishes there")
	}
	h.streams[ctx.Path] = &published{gortsplib.NewServerStream(h.server, ctx.Description), ctx.Session}
	return &base.Response{StatusCode: base.StatusOK}, nil
}

func (h *handler) OnSetup(
	ctx *gortsplib.ServerHandlerOnSetupCtx,
) (*base.Response, *gortsplib.ServerStream, error) {
	// That of a publisher has no password here.
	if ctx.Session.State() == gortsplib.ServerSessionStatePreRecord {
		return &base.Response{StatusCode: base.StatusOK}, nil, nil
	}
	if refusal := h.asked(ctx.Request); refusal != nil {
		return refusal, nil, nil
	}
	if (ctx.Transport == gortsplib.TransportUDP) != h.options.UDP {
		return &base.Response{StatusCode: base.StatusUnsupportedTransport}, nil, nil
	}
	stream := h.streamOf(ctx.Path)
	if stream == nil {
		return &base.Response{StatusCode: base.StatusNotFound}, nil, nil
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.transports = append(h.transports, ctx.Transport.String())
	return &base.Response{StatusCode: base.StatusOK}, stream, nil
}

func (h *handler) OnPlay(*gortsplib.ServerHandlerOnPlayCtx) (*base.Response, error) {
	return &base.Response{StatusCode: base.StatusOK}, nil
}

func (h *handler) OnRecord(ctx *gortsplib.ServerHandlerOnRecordCtx) (*base.Response, error) {
	stream := h.streamOf(ctx.Path)
	ctx.Session.OnPacketRTPAny(func(media *description.Media, _ format.Format, packet *rtp.Packet) {
		_ = stream.WritePacketRTP(media, packet)
	})
	return &base.Response{StatusCode: base.StatusOK}, nil
}

func serve(options command) (*handler, int, error) {
	nonce, err := auth.GenerateNonce()
	if err != nil {
		return nil, 0, err
	}
	port := 0
	h := &handler{options: options, nonce: nonce, streams: map[string]*published{}}
	h.server = &gortsplib.Server{
		Handler:     h,
		RTSPAddress: fmt.Sprintf("127.0.0.1:%d", options.Port),
		Listen: func(network, address string) (net.Listener, error) {
			listener, err := net.Listen(network, address)
			if err == nil {
				port = listener.Addr().(*net.TCPAddr).Port
			}
			return listener, err
		},
	}
	if options.TLS {
		certificate, err := ownCertificate()
		if err != nil {
			return nil, 0, err
		}
		h.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	}
	if !options.UDP {
		err := h.server.Start()
		return h, port, err
	}
	// Two ports that follow each other, the first of them even: somebody else may have one of them.
	for attempt := 0; ; attempt++ {
		even := 20000 + 2*(os.Getpid()*7+attempt*31)%20000
		h.server.UDPRTPAddress = fmt.Sprintf("127.0.0.1:%d", even)
		h.server.UDPRTCPAddress = fmt.Sprintf("127.0.0.1:%d", even+1)
		if err := h.server.Start(); err == nil || attempt == 20 {
			return h, port, err
		}
	}
}

func ownCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "camera"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func answer(fields map[string]any) {
	line, _ := json.Marshal(fields)
	fmt.Println(string(line))
}

func main() {
	var h *handler
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var order command
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			answer(map[string]any{"error": err.Error()})
			continue
		}
		switch order.Do {
		case "serve":
			opened, port, err := serve(order)
			if err != nil {
				answer(map[string]any{"error": err.Error()})
				continue
			}
			h = opened
			answer(map[string]any{"port": port})
		case "seen":
			h.mutex.Lock()
			paths := []string{}
			for path := range h.streams {
				paths = append(paths, path)
			}
			fields := map[string]any{"paths": paths, "transports": h.transports, "refused": h.refused}
			h.mutex.Unlock()
			answer(fields)
		default:
			answer(map[string]any{"error": "unknown command " + order.Do})
		}
	}
}
