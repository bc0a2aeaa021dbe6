package server

import (
	"context"

	"chancery/internal/edge/front"
)

// Listen starts the listeners, without the work in the background, and gives where HTTPS and mTLS are.
func (s *Server) Listen(ctx context.Context) (https, mtls string, err error) {
	if err := s.own.renew(ctx); err != nil {
		return "", "", err
	}
	if err := s.front.Start(ctx); err != nil {
		return "", "", err
	}
	return "https://" + s.front.Address(front.HTTPS).String(), "https://" + s.front.Address(front.MTLS).String(), nil
}

// Unlisten stops the listeners.
func (s *Server) Unlisten(ctx context.Context) error { return s.front.Stop(ctx) }
