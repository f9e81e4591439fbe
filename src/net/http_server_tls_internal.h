#pragma once
// What the server needs of OpenSSL: contexts of files, and who a peer is.

#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/http_server.h"

namespace flopsight::net {

using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

// Errors: kInvalid, one line that names the file.
base::Result<TlsContext> make_tls_context(const ServerTls& tls);

// The common name of the certificate that the peer proved to have; empty without one.
std::string peer_common_name(SSL* connection);

// The peer spoke HTTP without TLS.
bool is_plain_http(const boost::system::error_code& handshake_error);

}  // namespace flopsight::net
