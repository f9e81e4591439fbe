#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/ssl/error.hpp>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "net/http_server_tls_internal.h"

namespace flopsight::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kPemBytesMax = 4 << 20;

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};

base::Error invalid(std::string message) {
  return base::Error{base::ErrorCode::kInvalid, std::move(message)};
}

base::Result<std::string> read_pem(const std::string& path, const std::string& what) {
  if (path.empty()) return invalid("TLS needs a " + what + " file");
  if (path == "-") return invalid("-: a " + what + " is read from a file only");
  auto text = base::read_file(path, kPemBytesMax);
  if (!text.ok()) return invalid(text.error().message);
  return text;
}

base::Status use_certificate(asio::ssl::context& context, const ServerTls& tls) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string chain, read_pem(tls.cert_file, "certificate"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string key, read_pem(tls.key_file, "key"));
  error_code error;
  context.use_certificate_chain(asio::buffer(chain), error);
  if (error) {
    return invalid(tls.cert_file +
                   ": no usable PEM certificate: " + base::printable(error.message()));
  }
  // Without this OpenSSL would ask for the passphrase on the terminal.
  context.set_password_callback([](std::size_t, auto) { return std::string(); }, error);
  context.use_private_key(asio::buffer(key), asio::ssl::context::pem, error);
  if (error &&
      ERR_GET_REASON(static_cast<unsigned long>(error.value())) == X509_R_KEY_VALUES_MISMATCH) {
    return invalid(tls.key_file + ": is not the key of the certificate in " + tls.cert_file);
  }
  if (error) {
    return invalid(tls.key_file +
                   ": no usable PEM key without a passphrase: " + base::printable(error.message()));
  }
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {
    ERR_clear_error();
    return invalid(tls.key_file + ": is not the key of the certificate in " + tls.cert_file);
  }
  return {};
}

base::Status ask_for_client_certificates(asio::ssl::context& context, const ServerTls& tls) {
  if (tls.client_ca_file.empty()) {
    if (tls.client_certificate_required) {
      return invalid("required client certificates need a client CA file");
    }
    return {};
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string authorities,
                             read_pem(tls.client_ca_file, "client CA"));
  error_code error;
  context.add_certificate_authority(asio::buffer(authorities), error);
  if (error) {
    return invalid(tls.client_ca_file + ": no usable PEM certificate of a client CA: " +
                   base::printable(error.message()));
  }
  // The names that clients are told to choose their certificate by.
  SSL_CTX_set_client_CA_list(context.native_handle(),
                             SSL_load_client_CA_file(tls.client_ca_file.c_str()));
  ERR_clear_error();
  auto mode = asio::ssl::verify_peer;
  if (tls.client_certificate_required) mode |= asio::ssl::verify_fail_if_no_peer_cert;
  context.set_verify_mode(mode);
  return {};
}

}  // namespace

base::Result<TlsContext> make_tls_context(const ServerTls& tls) {
  if (tls.min_version != "TLS12" && tls.min_version != "TLS13") {
    return invalid("TLS version '" + base::printable(tls.min_version) +
                   "': expected TLS12 or TLS13");
  }
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native,
                                tls.min_version == "TLS13" ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(
      native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  // A session that is taken up again belongs to this context only; without a name OpenSSL refuses
  // it where clients have certificates.
  constexpr unsigned char kSessionContext[] = "flopsight";
  SSL_CTX_set_session_id_context(native, kSessionContext, sizeof kSessionContext);
  FLOPSIGHT_RETURN_IF_ERROR(use_certificate(*context, tls));
  FLOPSIGHT_RETURN_IF_ERROR(ask_for_client_certificates(*context, tls));
  return context;
}

std::string peer_common_name(SSL* connection) {
  const std::unique_ptr<X509, Freer<X509_free>> certificate(SSL_get1_peer_certificate(connection));
  if (certificate == nullptr || SSL_get_verify_result(connection) != X509_V_OK) return {};
  const X509_NAME* subject = X509_get_subject_name(certificate.get());
  const int index = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (index < 0) return {};
  unsigned char* bytes = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)));
  if (size < 0) return {};
  const std::string name(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  // "admin\0.example" must not pass for "admin" anywhere.
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return {};
  }
  return name;
}

bool is_plain_http(const error_code& handshake_error) {
  return handshake_error.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(handshake_error.value())) == SSL_R_HTTP_REQUEST;
}

}  // namespace flopsight::net
