#pragma once
// A temporary folder with throw-away certificates, made by the openssl command. Test-only.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.h"

namespace flopsight::net {

// ca.pem; server and client certificates of it as NAME.pem and NAME.key, for the DNS name
// metrics.example; stranger.pem of another CA with the name "client"; locked.key, with a
// passphrase.
class TestCertificates {
 public:
  TestCertificates() {
    char name[] = "/tmp/flopsight-certificates-XXXXXX";
    FLOPSIGHT_CHECK(mkdtemp(name) != nullptr);
    folder_ = name;
    authority("ca", "Flopsight test CA");
    authority("other_ca", "another CA");
    issue("server", "server", "ca");
    issue("renewed", "renewed", "ca");
    issue("client", "client", "ca");
    issue("stranger", "client", "other_ca");
    run("openssl pkey -in server.key -aes128 -passout pass:secret -out locked.key");
    run("echo 'no PEM' > garbage.pem");
  }
  ~TestCertificates() { std::filesystem::remove_all(folder_); }
  TestCertificates(const TestCertificates&) = delete;
  TestCertificates& operator=(const TestCertificates&) = delete;

  std::string path(const std::string& file) const { return folder_ + "/" + file; }

 private:
  void authority(const std::string& file, const std::string& name) const {
    run("openssl req -newkey rsa:2048 -nodes -batch -x509 -days 2 -subj '/CN=" + name +
        "' -keyout " + file + ".key -out " + file + ".pem");
  }
  void issue(const std::string& file, const std::string& name, const std::string& by) const {
    run("openssl req -newkey rsa:2048 -nodes -batch -subj '/O=test/CN=" + name + "' -keyout " +
        file + ".key -out " + file + ".csr");
    run("echo 'subjectAltName=DNS:metrics.example' > " + file + ".ext");
    run("openssl x509 -req -days 2 -in " + file + ".csr -CA " + by + ".pem -CAkey " + by +
        ".key -CAcreateserial -extfile " + file + ".ext -out " + file + ".pem");
  }
  void run(const std::string& command) const {
    const std::string line = "cd " + folder_ + " && (" + command + ") >>log 2>&1";
    FLOPSIGHT_CHECK(std::system(line.c_str()) == 0);
  }
  std::string folder_;
};

}  // namespace flopsight::net
