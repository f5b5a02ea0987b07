"""Settings of Django's tests, at the server that the environment names."""

import os


def database(name):
    return {
        "ENGINE": "django.db.backends.mysql",
        "NAME": name,
        "HOST": os.environ["MYSQL_HOST"],
        "PORT": os.environ["MYSQL_PORT"],
        "USER": "app",
        "PASSWORD": "secret",
        "TEST": {"CHARSET": "utf8mb4"},
    }


DATABASES = {"default": database("django"), "other": database("django_other")}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SECRET_KEY = "of tests"
TEST_RUNNER = "runner.Runner"
USE_TZ = False
